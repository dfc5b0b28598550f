package tree

import (
	"slices"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// aclSet is one access control list, shared by all nodes that have it and never
// changed. Nearly all nodes of a server have one of a handful of lists, which is
// why ZooKeeper keeps them apart too (ReferenceCountedACLCache).
type aclSet struct {
	list  []wire.ACL
	place aclNumber // in the table
	key   string    // the list encoded, by which equal lists are found
	refs  int       // how many nodes have it
	index *aclIndex // of a long list; intern makes it, or one request could need thousands
}

// aclNumber stands for a list in a node, where a pointer would take twice as much.
// It means nothing outside its table.
type aclNumber uint32

// aclTable keeps one copy of each list, for as long as a node has it.
// Without the counts, clients that make up identities could fill the memory
// with lists that no node has any more.
type aclTable struct {
	byKey map[string]*aclSet
	sets  []*aclSet   // by their numbers, nil where one is free
	free  []aclNumber // given again before there are higher ones
	bytes int64       // aclCost of all lists
	buf   []byte      // where a list is encoded to be looked up, used again
}

func newACLTable() aclTable {
	return aclTable{byKey: make(map[string]*aclSet)}
}

// intern returns the shared copy of list and counts one user of it. The table
// keeps list.
func (a *aclTable) intern(list []wire.ACL) *aclSet {
	a.buf = appendACL(a.buf[:0], list)
	s, ok := a.byKey[string(a.buf)]
	if !ok {
		s = &aclSet{list: list, key: string(a.buf), place: a.number()}
		if len(list) > shortACL {
			s.index = newACLIndex(list)
		}
		a.byKey[s.key], a.sets[s.place] = s, s
		a.bytes += aclCost(list)
	}
	s.refs++
	return s
}

// number takes a free number.
func (a *aclTable) number() aclNumber {
	if last := len(a.free) - 1; last >= 0 {
		n := a.free[last]
		a.free = a.free[:last]
		return n
	}
	a.sets = append(a.sets, nil)
	return aclNumber(len(a.sets) - 1)
}

// of is the list that a node has.
func (a *aclTable) of(n *node) *aclSet { return a.sets[n.acl] }

// release takes one user away, and with the last one the list. Whoever replaces
// a node's list takes hold of the new one first: they may be the same.
func (a *aclTable) release(s *aclSet) {
	s.refs--
	if s.refs == 0 {
		delete(a.byKey, s.key)
		a.sets[s.place], a.free = nil, append(a.free, s.place)
		a.bytes -= aclCost(s.list)
	}
}

// growth is how many bytes it takes to give a node another list than old.
func (a *aclTable) growth(old *aclSet, list []wire.ACL) int64 {
	a.buf = appendACL(a.buf[:0], list)
	set, known := a.byKey[string(a.buf)]
	size := int64(0)
	if !known {
		size = aclCost(list)
	}
	if old.refs == 1 && old != set {
		size -= aclCost(old.list)
	}
	return size
}

// openACL lets everybody do everything (ZooDefs.Ids.OPEN_ACL_UNSAFE).
func openACL() []wire.ACL {
	return []wire.ACL{{Perms: wire.PermAll, Scheme: schemeWorld, ID: anyone}}
}

// readACL lets everybody read (ZooDefs.Ids.READ_ACL_UNSAFE).
func readACL() []wire.ACL {
	return []wire.ACL{{Perms: wire.PermRead, Scheme: schemeWorld, ID: anyone}}
}

// fixACL turns the list of a request into the one to store: duplicates removed,
// "auth" replaced by the requester's identities (PrepRequestProcessor.fixupACL).
// What "auth" becomes is fixed here once and for all: the stored list never
// depends on who asks later. Permission bits are stored as they came, also ones
// that mean nothing.
//
// What "auth" becomes may be a thousand times as long as the word. All of a
// request is refused beyond half a frame of it, or one could make a record that
// the log has no room for.
func (p *prep) fixACL(list []wire.ACL) ([]wire.ACL, wire.ErrCode) {
	t, ids := p.t, p.c.ids
	if len(list) == 0 {
		return nil, wire.ErrInvalidACL
	}
	fixed := make([]wire.ACL, 0, min(len(list), maxACL))
	var seen map[wire.ACL]bool // for a list so long that a search would hold everybody up
	if len(list) > 16 {
		seen = make(map[wire.ACL]bool, min(len(list), maxACL))
	}
	for i, a := range list {
		if seen[a] || seen == nil && slices.Contains(list[:i], a) {
			continue
		}
		if seen != nil {
			seen[a] = true
		}
		switch {
		case a.Scheme == schemeWorld && a.ID == anyone:
			fixed = append(fixed, a)
		case a.Scheme == schemeAuth:
			// The entry's own id does not matter; clients leave it empty.
			n := len(fixed)
			for _, id := range ids {
				if proves(id.scheme) && t.provides(id.scheme, ids) {
					fixed = append(fixed, wire.ACL{Perms: a.Perms, Scheme: id.scheme, ID: id.id})
					p.expanded += aclEntryMin + len(id.scheme) + len(id.id)
				}
			}
			if len(fixed) == n || p.expanded > t.cfg.MaxFrame/2 {
				return nil, wire.ErrInvalidACL
			}
		case t.provides(a.Scheme, ids) && t.validID(a):
			fixed = append(fixed, a)
		default:
			return nil, wire.ErrInvalidACL
		}
		if len(fixed) > maxACL {
			return nil, wire.ErrInvalidACL
		}
	}
	return fixed, wire.ErrOK
}

// may reports whether c has one of the permissions in perm by a list.
func (t *Tree) may(c *conn, s *aclSet, perm wire.Perm) bool {
	if t.cfg.SkipACL {
		return true
	}
	if t.asker != c || len(s.list)*len(c.ids) <= fewMatches {
		return s.permits(perm, c.ids)
	}
	q := question{s, perm}
	yes, known := t.answers[q]
	if !known {
		yes = s.permits(perm, c.ids)
		t.answers[q] = yes
		t.steps += len(c.ids)
	}
	return yes
}

// fewMatches is how many comparisons of entries with identities cost less than to
// keep the answer.
const fewMatches = 16

// question is whether the asker has a permission by a list.
type question struct {
	acl  *aclSet
	perm wire.Perm
}

// keepAnswers has may keep its answers for c until the returned function is called: a
// request of many parts may ask for the same fifty thousand times.
func (t *Tree) keepAnswers(c *conn) func() {
	t.asker, t.answers = c, make(map[question]bool)
	return func() { t.asker, t.answers = nil, nil }
}

// permits reports whether one of ids has one of the permissions in perm
// (ZooKeeperServer.checkACL). An empty list forbids nothing; requests can't
// store one, but Java treats it so, and a snapshot may come from elsewhere. The
// super identity is found first, so that no list can lock the operator out.
func (s *aclSet) permits(perm wire.Perm, ids []identity) bool {
	if len(s.list) == 0 {
		return true
	}
	for _, id := range ids {
		if id.scheme == schemeSuper {
			return true
		}
	}
	if len(s.list) <= shortACL {
		return permits(s.list, perm, ids)
	}
	if s.index == nil {
		s.index = newACLIndex(s.list)
	}
	return s.index.permits(perm, ids)
}

// permits looks through a list for identities of which none is super.
func permits(list []wire.ACL, perm wire.Perm, ids []identity) bool {
	for _, a := range list {
		if a.Perms&perm == 0 {
			continue
		}
		if a.Scheme == schemeWorld && a.ID == anyone {
			return true
		}
		for _, id := range ids {
			if id.matches(a) {
				return true
			}
		}
	}
	return false
}

// appendACL appends a list behind its length.
func appendACL(b []byte, list []wire.ACL) []byte {
	b = jute.AppendVectorLen(b, len(list), false)
	for i := range list {
		b = list[i].Append(b)
	}
	return b
}

// aclEntryMin is the room the smallest entry takes: permissions, two lengths.
const aclEntryMin = 12

// decodeACL reads what appendACL wrote. There is no null list in storage: a
// request without a list was refused.
func decodeACL(r *jute.Reader) []wire.ACL {
	n := r.VectorLen(aclEntryMin)
	if n < 0 {
		r.Failf("access control list missing")
		return nil
	}
	list := make([]wire.ACL, n)
	for i := range list {
		list[i].Decode(r)
	}
	return list
}
