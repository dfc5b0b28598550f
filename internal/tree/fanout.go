package tree

import (
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// multiFanOut and callFanOut limit the size of the events of one multi, and of any
// one call, in multiples of Config.MaxReply. maxEvents limits the number of events of
// one multi.
const (
	multiFanOut, callFanOut = 2, 4
	maxEvents               = 50_000
)

// eventCost is the memory of an event in addition to its path, until it is written.
const eventCost = 100

// checkEventLimits checks that the events of a multi stay within limits. One request
// may change a node forty thousand times, and so many clients may watch it that the
// events exhaust the memory. One-shot watches count once in a multi, and do not count
// for the memory, because their number is limited. The operation with the most of them
// is free, because it need not be in a multi. With an error it returns the index of the
// first operation that exceeds a limit.
func (t *Tree) checkEventLimits(subs []txn) (int, wire.ErrCode) {
	if t.watches.total == 0 {
		return 0, wire.ErrOK
	}
	size, events, inspected, most := 0, 0, 0, 0
	known, above := make(map[string]audience, len(subs)), make(map[string]audience)
	listed := make(map[string]bool)
	for i := range subs {
		x := &subs[i]
		if x.path == "" {
			continue // a check
		}
		once := 0
		a, ok := known[x.path]
		if !ok {
			a = t.audienceOf(x.path, above)
			known[x.path] = a
			once = t.watches.countWith(x.path, dataOnce)
		}
		if x.op != wire.OpSetData {
			once += t.countOnceByChild(x.path, listed)
		}
		weight := t.eventWeight(x, a)
		once *= weight
		events += once
		most = max(most, once)
		events += a.watchers * weight
		size += a.watchers * (eventCost + len(x.path))
		inspected += a.inspected
		if size > multiFanOut*t.cfg.MaxReply || events-most+inspected/inspectedPerEvent > maxEvents {
			t.counters.RefusedReplies++
			return i, wire.ErrQuotaExceeded
		}
	}
	return 0, wire.ErrOK
}

// eventWeight returns how many events an event of x counts for. A long path takes
// longer to copy. The permission check takes longer if the list of the node is long.
// For a recursive watch, the lists of the ancestors are checked too.
func (t *Tree) eventWeight(x *txn, a audience) int {
	const shortACL = 4
	list, weight := x.acl, 1
	if n := t.nodes.get(x.path); n != nil {
		list = t.acls.of(n).list
	}
	if len(list) > shortACL {
		weight = 5
	}
	return weight + len(x.path)/textPerEvent + a.lists/listsPerEvent
}

// audience is the work that the watches of a node cause when it changes.
type audience struct {
	watchers  int // persistent watches that are notified, see countWith
	inspected int // watches that are inspected, whatever they report
	lists     int // if there are recursive watches, the ancestors by the weights of their lists
}

const (
	// longPath is the length above which the time to copy a path counts. longPaths is
	// how many bytes of such paths the events of one call may have.
	longPath, longPaths = 256, 8 << 20
	// textPerEvent bytes of a path, and inspectedPerEvent entries of lists of watches,
	// count as one more event of a multi. So do listsPerEvent short lists of ancestors if there
	// are recursive watches, and identitiesPerEvent identities of a client.
	textPerEvent, inspectedPerEvent   = 128, 64
	listsPerEvent, identitiesPerEvent = 4, 4
	// fewLookups is how many permission lookups an event includes without extra cost.
	// maxLookups limits the lookups of events that need more, in one call.
	fewLookups, maxLookups = 32, 500_000
)

// admitEvent counts an event for c, and reports whether it may be sent within the
// limits of one call. The end of a session with a hundred thousand nodes cannot be
// refused as a multi can. Instead, connections whose events exceed the limit are
// closed, and their clients reconnect and read the state. A watch that silently
// misses an event would be worse.
func (t *Tree) admitEvent(c *conn, size int) bool {
	if c.lastChange == overflow {
		return false
	}
	if size > longPath {
		t.longPaths += size
	}
	if t.eventBytes += eventCost + size; t.eventBytes <= callFanOut*t.cfg.MaxReply && t.longPaths <= longPaths {
		return true
	}
	t.markOverflowed(c)
	return false
}

// admitLookups counts n permission lookups for an event of c, and reports whether
// they are within the limits of one call. If not, c is closed as in admitEvent.
func (t *Tree) admitLookups(c *conn, n int) bool {
	if n <= fewLookups || t.cfg.SkipACL {
		return true
	}
	if t.permissionLookups += n; t.permissionLookups <= maxLookups {
		return true
	}
	t.markOverflowed(c)
	return false
}

// markOverflowed marks c: it gets no more events, and closeOverflowed closes it.
func (t *Tree) markOverflowed(c *conn) {
	c.lastChange = overflow
	t.overflowed = append(t.overflowed, c)
}

// closeOverflowed closes, at the end of a call, the connections that did not get all
// of their events.
func (t *Tree) closeOverflowed(out *Out) {
	t.eventBytes, t.longPaths, t.permissionLookups = 0, 0, 0
	for i, c := range t.overflowed {
		t.overflowed[i] = nil
		if t.conns[c.id] == c {
			t.counters.RefusedReplies++
			t.drop(c, out)
		}
	}
	t.overflowed = t.overflowed[:0]
}

// audienceOf estimates the audience of a change of the node at path or of its parent's
// children. The node need not exist. above caches results of audienceAbove, by path, for
// the operations of a multi.
func (t *Tree) audienceOf(path string, above map[string]audience) audience {
	w := &t.watches
	if path == rootPath {
		return audience{watchers: w.countWith(path, dataPersistent|dataRecursive), inspected: len(w.byPath[path])}
	}
	parent := path[:max(strings.LastIndexByte(path, '/'), 1)]
	a := t.audienceAbove(parent, above)
	a.watchers += w.countWith(path, dataPersistent|dataRecursive) + w.countWith(parent, dataRecursive|childPersistent)
	a.inspected += len(w.byPath[path]) + len(w.byPath[parent])
	return a
}

// countOnceByChild counts the one-shot watches of children that report the creation or
// the deletion of the node at path. listed has the paths whose watches were counted.
func (t *Tree) countOnceByChild(path string, listed map[string]bool) (n int) {
	for _, at := range []string{path, path[:max(strings.LastIndexByte(path, '/'), 1)]} {
		if !listed[at] {
			listed[at] = true
			n += t.watches.countWith(at, childOnce)
		}
	}
	return n
}

// audienceAbove returns the audience of the recursive watches on ancestors of path, with
// the lists of these and of the node at path. If the nodes on the path do not exist, each
// ancestor path is looked up, once per multi.
func (t *Tree) audienceAbove(path string, above map[string]audience) (a audience) {
	w := &t.watches
	if w.recursive == 0 {
		return a
	}
	var missing []string // from path upwards
	for at := path; ; at = at[:max(strings.LastIndexByte(at, '/'), 1)] {
		if known, ok := above[at]; ok {
			a = known
			break
		}
		if p := t.nodes.get(at); p != nil {
			a = t.audienceAboveNode(p)
			above[at] = a
			break
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		parent := at[:max(strings.LastIndexByte(at, '/'), 1)]
		a.watchers += w.countWith(parent, dataRecursive)
		a.inspected += len(w.byPath[parent])
		a.lists++
		above[at] = a
	}
	return a
}

// audienceAboveNode is audienceAbove for a node. It clears the marks of ancestors whose
// watches were removed, so that the next operations need not look them up.
func (t *Tree) audienceAboveNode(n *node) (a audience) {
	last, weight := n.acl, t.acls.of(n).weight()
	a.lists = weight
	for p := n.parent; p != nil; p = p.parent {
		if p.acl != last {
			last, weight = p.acl, t.acls.of(p).weight()
		}
		a.lists += weight
		if p.extra.recursiveWatch {
			n := t.watches.countWith(p.path(), dataRecursive)
			a.watchers += n
			a.inspected += len(t.watches.byPath[p.path()])
			p.extra.recursiveWatch = n > 0
		}
	}
	return a
}

// countWith counts the connections that have one of bits on path. One with many
// identities counts more than once, because its permission checks take longer.
func (w *watchTable) countWith(path string, bits watchBits) int {
	n := 0
	for _, e := range w.byPath[path] {
		if e.bits&bits != 0 {
			n += 1 + len(e.conn.ids)/identitiesPerEvent
		}
	}
	return n
}
