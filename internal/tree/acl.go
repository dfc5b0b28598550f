package tree

import (
	"crypto/sha256"
	"math/bits"
	"slices"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// aclSet is one access control list, shared by all nodes that have it and never
// modified. Nearly all nodes of a server have one of a few lists, so ZooKeeper shares
// them too (ReferenceCountedACLCache).
type aclSet struct {
	list   []wire.ACL
	number aclNumber // index in the table
	key    aclKey
	refs   int   // number of nodes with this list
	cost   int64 // see aclCost
	index  aclIndex
	// unindexed: index is not computed yet. Only lists of an unfinished multi are not,
	// because most of them are never checked.
	unindexed bool
}

// aclNumber identifies a list in a node, at half the size of a pointer. It is valid
// only in its table.
type aclNumber uint32

// aclKey is the hash of an encoded list, by which equal lists are found. It replaces the list,
// which may have a megabyte, when the table grows or a list is removed. SHA-256 has no known
// collisions.
type aclKey [sha256.Size]byte

// aclTable keeps one copy of each list while a node has it. Without the reference
// counts, clients that invent identities could fill the memory with unused lists.
type aclTable struct {
	byKey map[aclKey]*aclSet
	sets  aclBlocks   // by number, nil if the number is free
	next  aclNumber   // the lowest number that was never assigned
	free  []aclNumber // reused before higher numbers are assigned
	bytes int64       // aclCost of all lists
	buf   []byte      // reusable buffer to encode a list for a lookup
	// last and lastList are the last interned list and the argument that it came from. The
	// creates of a multi often share the latter, and most creates have an equal one.
	last     *aclSet
	lastList []wire.ACL
	// prepared has the lists of the nodes that a multi creates, in the table or not. If the multi
	// deletes the last node with a list and creates another, the list remains the same aclSet, for
	// which the permission cache has results. lastPrepared and preparedList are for prepare as
	// last and lastList are for intern.
	prepared     map[aclKey]*aclSet
	lastPrepared *aclSet
	preparedList []wire.ACL
}

func newACLTable() aclTable {
	return aclTable{byKey: make(map[aclKey]*aclSet)}
}

// intern returns the shared copy of list and counts one user of it. The table keeps
// list.
func (a *aclTable) intern(list []wire.ACL) *aclSet {
	const short = 4
	if n := len(list); n > 0 && n == len(a.lastList) && a.last.refs > 0 &&
		(&list[0] == &a.lastList[0] || n <= short && slices.Equal(list, a.lastList)) {
		a.last.refs++
		return a.last
	}
	key := a.key(list)
	s, ok := a.byKey[key]
	a.last, a.lastList = s, list
	if !ok {
		if s = a.prepared[key]; s == nil {
			s = &aclSet{list: list, key: key, cost: aclCost(list), index: newACLIndex(list)}
		}
		s.number = a.newNumber()
		a.byKey[s.key], *a.sets.at(s.number) = s, s
		a.bytes += s.cost
		a.last = s
	}
	s.refs++
	return s
}

// prepare returns the shared copy of list that intern will return during the present multi.
func (a *aclTable) prepare(list []wire.ACL) *aclSet {
	if n := len(list); n > 0 && n == len(a.preparedList) && &list[0] == &a.preparedList[0] {
		return a.lastPrepared
	}
	key := a.key(list)
	s := a.prepared[key]
	if s == nil {
		if s = a.byKey[key]; s == nil {
			s = &aclSet{list: list, key: key, cost: aclCost(list), index: newACLIndex(list)}
		}
		if a.prepared == nil {
			a.prepared = make(map[aclKey]*aclSet)
		}
		a.prepared[key] = s
	}
	a.lastPrepared, a.preparedList = s, list
	return s
}

// forgetPrepared ends the multi: lists that it does not use are dropped.
func (a *aclTable) forgetPrepared() { a.prepared, a.lastPrepared, a.preparedList = nil, nil, nil }

// key returns the key of a list.
func (a *aclTable) key(list []wire.ACL) aclKey {
	a.buf = appendACL(a.buf[:0], list)
	return sha256.Sum256(a.buf)
}

// newNumber assigns a free number.
func (a *aclTable) newNumber() aclNumber {
	if last := len(a.free) - 1; last >= 0 {
		n := a.free[last]
		a.free = a.free[:last]
		return n
	}
	n := a.next
	a.next++
	if int(n/aclBlock) == len(a.sets) {
		a.sets = append(a.sets, new([aclBlock]*aclSet))
	}
	return n
}

// aclBlock is how many lists a block has.
const aclBlock = 4096

// aclBlocks holds lists in blocks, so that none of millions of lists is moved when one more is
// added: that would delay all clients.
type aclBlocks []*[aclBlock]*aclSet

// at returns the place of a number.
func (b aclBlocks) at(n aclNumber) **aclSet { return &b[n/aclBlock][n%aclBlock] }

// of returns the list of a node.
func (a *aclTable) of(n *node) *aclSet { return *a.sets.at(n.acl) }

// release removes one user, and the list with its last user. To replace a node's
// list, intern the new one before releasing the old one, because they may be equal.
func (a *aclTable) release(s *aclSet) {
	s.refs--
	if s.refs == 0 {
		delete(a.byKey, s.key)
		*a.sets.at(s.number), a.free = nil, append(a.free, s.number)
		a.bytes -= s.cost
	}
}

// growth returns how many bytes it takes to replace the list old of a node by list.
func (a *aclTable) growth(old *aclSet, list []wire.ACL) int64 {
	set, known := a.byKey[a.key(list)]
	size := int64(0)
	if !known {
		size = aclCost(list)
	}
	if old.refs == 1 && old != set {
		size -= old.cost
	}
	return size
}

// openACL permits everything to everyone (ZooDefs.Ids.OPEN_ACL_UNSAFE).
func openACL() []wire.ACL {
	return []wire.ACL{{Perms: wire.PermAll, Scheme: schemeWorld, ID: anyone}}
}

// readACL permits reading to everyone (ZooDefs.Ids.READ_ACL_UNSAFE).
func readACL() []wire.ACL {
	return []wire.ACL{{Perms: wire.PermRead, Scheme: schemeWorld, ID: anyone}}
}

// fixACL converts the list of a request to the list to store. It removes duplicates
// and replaces "auth" by the requester's identities (PrepRequestProcessor.fixupACL).
// This replacement is final: the stored list does not depend on later requesters.
// Permission bits are stored unchanged, including those without a meaning.
//
// The identities may be a thousand times as long as the word "auth". If those of a
// request exceed half a frame, the request is refused. Otherwise it could make a
// record that is too large for the log.
//
// Most multis have the same list in each create. A list that equals the last one is not
// converted again.
func (p *preparer) fixACL(list []wire.ACL) ([]wire.ACL, wire.ErrCode) {
	last := &p.lastACL
	if last.fixed != nil && slices.Equal(list, last.list) {
		p.t.steps += entrySteps * len(list)
		if p.expanded += last.expanded; p.expanded > p.t.cfg.MaxFrame/2 {
			return nil, wire.ErrInvalidACL
		}
		return last.fixed, wire.ErrOK
	}
	before := p.expanded
	fixed, err := p.convertACL(list)
	if err == wire.ErrOK {
		*last = fixedACL{list: list, fixed: fixed, expanded: p.expanded - before}
	}
	return fixed, err
}

// fixedACL is the result of fixACL for the list of a request.
type fixedACL struct {
	list, fixed []wire.ACL
	expanded    int     // how much it added to preparer.expanded
	set         *aclSet // for nodes that the multi creates, nil before the first one
}

// unfinished returns the list for a node of an unfinished multi.
func (f *fixedACL) unfinished() *aclSet {
	if f.set == nil {
		f.set = &aclSet{list: f.fixed, unindexed: true}
	}
	return f.set
}

// convertACL is fixACL for a list that differs from the last one.
func (p *preparer) convertACL(list []wire.ACL) ([]wire.ACL, wire.ErrCode) {
	t, ids := p.t, p.c.ids
	if len(list) == 0 {
		return nil, wire.ErrInvalidACL
	}
	fixed := make([]wire.ACL, 0, min(len(list), maxACL))
	var seen map[wire.ACL]bool // for a list so long that linear search would delay other clients
	if len(list) > 16 {
		seen = make(map[wire.ACL]bool, min(len(list), maxACL))
	}
	for i, a := range list {
		t.steps += entrySteps // also for a duplicate
		if seen[a] || seen == nil && slices.Contains(list[:i], a) {
			continue
		}
		if seen != nil {
			seen[a] = true
		}
		if a.Scheme == schemeIP {
			t.steps += entrySteps // it is parsed, and its range is computed
		}
		switch {
		case a.Scheme == schemeWorld && a.ID == anyone:
			fixed = append(fixed, a)
		case a.Scheme == schemeAuth:
			// The entry's own ID does not matter; clients leave it empty.
			n := len(fixed)
			for _, id := range ids {
				if provesIdentity(id.scheme) && t.provides(id.scheme, ids) {
					fixed = append(fixed, wire.ACL{Perms: a.Perms, Scheme: id.scheme, ID: id.id})
					p.expanded += minACLEntry + len(id.scheme) + len(id.id)
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
	if len(fixed) < cap(fixed) {
		fixed = slices.Clone(fixed) // nodes keep the list, and aclCost counts no free room
	}
	return fixed, wire.ErrOK
}

// may reports whether a list gives c one of the permissions in perm.
func (t *Tree) may(c *conn, s *aclSet, perm wire.Perm) bool {
	if t.cfg.SkipACL {
		return true
	}
	lookups := s.lookups(len(c.ids), perm)
	if t.permissionCache == nil || lookups <= cachedLookup {
		t.lookups += lookups
		t.steps += lookups / lookupsPerStep
		return s.permits(perm, &c.credentials)
	}
	q := permissionKey{c, s, perm}
	yes, known := t.permissionCache[q]
	if known {
		t.lookups += cachedLookup
		return yes
	}
	yes = s.permits(perm, &c.credentials)
	t.permissionCache[q] = yes
	t.lookups += lookups
	t.steps += lookups / lookupsPerStep
	return yes
}

// weight returns how many lookups in a short list one lookup in the list counts for. A
// lookup is a binary search, and long lists are rarely in the processor's cache.
func (s *aclSet) weight() int { return listWeight(len(s.list)) }

func listWeight(n int) int { return max(1, bits.Len(uint(n))-2) }

// lookups returns how many lookups in a short list a permission check of a client with n
// identities counts for. A check searches the longer one of the list and the identities for each
// element of the other, unless everyone has the permission: then it takes as long as in a list of
// one entry.
func (s *aclSet) lookups(n int, perm wire.Perm) int {
	if s.index.anyone&perm != 0 {
		return 1 + min(n, 1)
	}
	return 1 + min(n, len(s.list))*listWeight(max(n, len(s.list)))
}

// readLookups returns how many lookups maySee counts for a client with n identities.
func (t *Tree) readLookups(s *aclSet, n int) int {
	if s == nil || t.cfg.SkipACL {
		return 0
	}
	return s.lookups(n, wire.PermRead)
}

// cachedLookup is how many lookups a result in the cache takes.
const cachedLookup = 2

// permissionKey is the key of the permission cache.
type permissionKey struct {
	conn *conn
	acl  *aclSet
	perm wire.Perm
}

// cachePermissions makes may cache its results until the returned function is called. A
// request with many parts may need the same result fifty thousand times.
func (t *Tree) cachePermissions() func() {
	t.permissionCache = make(map[permissionKey]bool)
	return func() {
		t.permissionCache = nil
		t.acls.forgetPrepared()
	}
}

// permits reports whether c has one of the permissions in perm
// (ZooKeeperServer.checkACL). An empty list forbids nothing. Requests cannot store
// one, but Java treats it so, and a snapshot may contain one. The super identity is
// checked first, so that no list can lock out the operator.
func (s *aclSet) permits(perm wire.Perm, c *credentials) bool {
	return len(s.list) == 0 || c.super || s.index.permits(perm, c)
}

// appendACL appends the length of a list, then the list.
func appendACL(b []byte, list []wire.ACL) []byte {
	b = jute.AppendVectorLen(b, len(list), false)
	for i := range list {
		b = list[i].Append(b)
	}
	return b
}

// minACLEntry is the size of the smallest entry: permissions and two lengths.
const minACLEntry = 12

// decodeACL reads what appendACL wrote. Storage contains no null list, because a
// request without a list is refused.
func decodeACL(r *jute.Reader) []wire.ACL {
	n := r.VectorLen(minACLEntry)
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
