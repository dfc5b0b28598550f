package tree

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// The server sends the events of a change before it handles the next request, so their work is
// limited. A multi of several changes with too much work is refused, see checkEventWork. Another
// change may be the end of a session, which cannot be refused: see limitWork.

const (
	// multiFanOut limits the size of the events of one multi, in multiples of Config.MaxReply.
	multiFanOut = 2
	// maxEvents is how many short events of clients that may see them one multi may cause.
	maxEvents = 50_000
	// eventCost is the memory of an event in addition to its path, until it is written.
	eventCost = 100
)

// The work for events is counted in lookups, see aclSet.lookups. A lookup takes about 40 ns.
const (
	eventWork = 8 // an event for one client, without the permission check
	// maxWork is the limit for all events of a multi, and for those of any other change. In a multi,
	// the change with the most one-shot watches may use as much for these. Before another change,
	// checkEvents may do half as much.
	maxWork = maxEvents * (eventWork + 2)
	// fewWork is how much work an event may take without being limited, unless it is in a multi of
	// several changes.
	fewWork = 32
	// inspectedPerWork entries of lists of watches, textPerWork bytes of a path in a multi, and
	// copiedPerWork bytes of a long path in another change count as one lookup.
	inspectedPerWork, textPerWork, copiedPerWork = 6, 16, 16
	// Paths that are longer than longPath take time to copy. An event with a path that is longer
	// than sharedPath is not copied for each client.
	longPath, sharedPath = 256, 64 << 10
)

// viewers are the clients whose recursive watches on a node or its ancestors report changes of the
// node's children.
type viewers struct {
	conns  []*conn // that may list the children of the nodes between the watch and the change
	each   int     // the most work to check that again for one of them
	hidden int     // the work to check again what the other clients may list
}

// eventCount counts the work for the events of a multi before it is applied. The permission lookups
// and the copied bytes of the delivery are at most what it counts, because the permission cache has
// the result of each check of the delivery that takes more than cachedLookup.
type eventCount struct {
	t       *Tree
	viewers map[string]*viewers // by path of the parent
	// dataSeen and childSeen have the paths whose one-shot watches were counted.
	dataSeen, childSeen map[string]bool
	acls                map[string]*aclSet // of nodes that an operation creates
	work, size          int                // without the permission lookups
	before              int                // Tree.lookups at the start
	onceWork            int                // for the one-shot watches of the present operation
	mostOnce            int                // the most onceWork of an operation
	refused             bool               // the work exceeds the limit, and was not counted further
}

func (t *Tree) newEventCount() *eventCount {
	return &eventCount{
		t: t, viewers: make(map[string]*viewers), dataSeen: make(map[string]bool),
		childSeen: make(map[string]bool), acls: make(map[string]*aclSet), before: t.lookups,
	}
}

// checkEventWork checks that the events of a multi stay within limits. It counts each event that a
// client gets, and the permission checks. A check of a client that may not see the events is cheap:
// its result is kept for the whole multi. One-shot watches count once, and do not count for the
// memory, because their number is limited. Those of one operation are free up to maxWork, because
// it need not be in a multi. With an error it returns the index of the first operation that exceeds
// a limit.
//
// If the multi has only one change, limitWork limits its events instead, as outside of a multi.
func (t *Tree) checkEventWork(subs []txn) (int, wire.ErrCode) {
	if t.watches.total == 0 {
		return 0, wire.ErrOK
	}
	changes := 0
	for i := range subs {
		if subs[i].changes() {
			changes++
		}
	}
	if changes == 1 {
		t.permissionCache = nil
		return 0, wire.ErrOK
	}
	e := t.newEventCount()
	for i := range subs {
		if !subs[i].changes() {
			continue
		}
		e.add(&subs[i])
		if e.exceeds() || e.size > multiFanOut*t.cfg.MaxReply {
			t.counters.RefusedReplies++
			return i, wire.ErrQuotaExceeded
		}
	}
	return 0, wire.ErrOK
}

// changes reports whether an operation of a multi is not a check.
func (x *txn) changes() bool { return x.path != "" }

// lookups returns the number of permission lookups so far.
func (e *eventCount) lookups() int { return e.t.lookups - e.before }

// exceeds reports whether the work so far exceeds the limit. If so, nothing more is counted,
// because counting takes as long as the delivery.
func (e *eventCount) exceeds() bool {
	e.refused = e.refused || e.work+e.lookups()-min(e.mostOnce, maxWork) > maxWork
	return e.refused
}

// add counts an operation, as fire, fireDeleted, and fireChildren will notify the clients.
func (e *eventCount) add(x *txn) {
	e.onceWork = 0
	once, lasting := e.once(e.dataSeen, x.path, dataOnce), dataPersistent|dataRecursive
	switch x.op {
	case wire.OpCreate:
		e.acls[x.path] = e.t.acls.prepare(x.acl)
		delete(e.viewers, x.path) // the multi may have deleted a node with another ACL
	case wire.OpDelete:
		once, lasting = once|e.once(e.childSeen, x.path, childOnce), lasting|childPersistent
	}
	var above *viewers
	parent := parentPath(x.path)
	if x.path != rootPath && e.t.watches.recursive > 0 {
		above = e.viewersOf(parent)
	}
	e.notify(x.path, once, lasting, above)
	if x.op != wire.OpSetData {
		e.notify(parent, e.once(e.childSeen, parent, childOnce), childPersistent, nil)
	}
}

// once returns bit, and 0 if it was called with the same path before.
func (e *eventCount) once(seen map[string]bool, path string, bit watchBits) watchBits {
	if seen[path] {
		return 0
	}
	seen[path] = true
	return bit
}

// aclOf returns the list of a node, or nil if there is no node.
func (e *eventCount) aclOf(path string) *aclSet {
	if set, ok := e.acls[path]; ok {
		return set
	}
	if n := e.t.nodes.get(path); n != nil {
		return e.t.acls.of(n)
	}
	return nil
}

// notify counts the events of a change of a node: those of the watches on its path that have one
// of the bits, and those for above.
func (e *eventCount) notify(path string, once, lasting watchBits, above *viewers) {
	w, set := &e.t.watches, e.aclOf(path)
	w.changes++
	list, each := w.byPath[path], eventWork+len(path)/textPerWork
	e.work += len(list) / inspectedPerWork
	for _, watch := range list {
		if watch.bits&(once|lasting) == 0 {
			continue
		}
		if e.exceeds() {
			return
		}
		before := e.work + e.lookups()
		if e.sees(watch.conn, set) {
			e.work += each
			if watch.bits&lasting != 0 {
				e.size += eventCost + len(path)
			}
		}
		if watch.bits&lasting == 0 {
			e.onceWork += e.work + e.lookups() - before
			e.mostOnce = max(e.mostOnce, e.onceWork)
		}
	}
	if above == nil {
		return
	}
	e.work += above.hidden
	for _, c := range above.conns {
		if e.exceeds() || !e.t.watches.markNotified(c) {
			continue
		}
		e.work += above.each
		if e.t.maySee(c, set) {
			e.work += each
			e.size += eventCost + len(path)
		}
	}
}

// sees reports whether c gets an event of the present change, and none was counted for it yet.
func (e *eventCount) sees(c *conn, set *aclSet) bool {
	return e.t.watches.markNotified(c) && e.t.maySee(c, set)
}

// viewersOf returns the viewers of changes of the children of a node. The path of each ancestor
// that the multi creates is looked up once.
func (e *eventCount) viewersOf(path string) *viewers {
	var v *viewers
	var created []string // from path upwards
	for at := path; v == nil; at = parentPath(at) {
		if v = e.viewers[at]; v != nil {
			break
		}
		n := e.t.nodes.get(at)
		if _, ok := e.acls[at]; ok || n == nil {
			created = append(created, at)
			continue
		}
		v = e.viewersOfNode(n)
		e.viewers[at] = v
	}
	for _, at := range slices.Backward(created) {
		v = e.viewersBelow(v, at)
		e.viewers[at] = v
	}
	return v
}

// viewersOfNode is viewersOf for a node that the multi does not create.
func (e *eventCount) viewersOfNode(n *node) *viewers {
	v := new(viewers)
	e.t.watches.changes++
	inspected := e.t.recursiveWatches(n, func(c *conn, lists []*aclSet) {
		if e.exceeds() || !e.t.watches.markNotified(c) {
			return
		}
		refused, checked := e.t.refusesList(c, lists)
		if refused {
			v.hidden += cachedLookup * checked
			return
		}
		v.conns = append(v.conns, c)
		v.each = max(v.each, cachedLookup*checked)
	})
	v.hidden += inspected / inspectedPerWork
	e.work += v.hidden
	return v
}

// viewersBelow is viewersOf for a node that the multi creates below a node with the viewers v.
func (e *eventCount) viewersBelow(v *viewers, path string) *viewers {
	list, set := e.t.watches.byPath[path], e.aclOf(path)
	below := &viewers{each: v.each + cachedLookup, hidden: v.hidden + len(list)/inspectedPerWork}
	e.t.watches.changes++
	note := func(c *conn) {
		switch {
		case e.exceeds() || !e.t.watches.markNotified(c):
		case e.t.maySee(c, set):
			below.conns = append(below.conns, c)
		default:
			below.hidden += below.each
		}
	}
	for _, w := range list {
		if w.bits&dataRecursive != 0 {
			note(w.conn)
		}
	}
	for _, c := range v.conns {
		note(c)
	}
	e.work += cachedLookup + len(list)/inspectedPerWork
	return below
}

// parentPath returns the path of the parent.
func parentPath(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 1)] }

// costlyEvent is an event that may take more than fewWork.
type costlyEvent struct {
	conn    *conn
	work    int       // at most what its delivery takes, or exactly that if it is known
	above   []*aclSet // the lists of ancestors that advance has not checked
	checked int       // the work of the checks of advance
	known   bool
}

// limitWork closes connections if the events of a change, other than one of several in a multi,
// would take too much work: the watches with one of bits on the path, and those with recurse on
// ancestors. Their clients reconnect and read the state. A watch that silently misses an event
// would be worse.
func (f *firing) limitWork(bits, recurse watchBits) {
	t := f.t
	if t.permissionCache != nil {
		return // checkEventWork has limited the events of a multi of several changes
	}
	if t.watches.watchers*f.mostWork(recurse) <= maxWork {
		return
	}
	costly := f.costlyEvents(bits, recurse)
	if totalWork(costly) <= maxWork {
		return
	}
	if f.checkEvents(costly); totalWork(costly) > maxWork {
		t.closeCostliest(costly)
	}
}

// costlyEvents returns the events of a change that may take more than fewWork. It assumes that the
// delivery checks all lists between the watch and the change.
func (f *firing) costlyEvents(bits, recurse watchBits) (costly []costlyEvent) {
	t := f.t
	var work [mostIdentities + 1]int // by the number of identities
	listed := 0
	add := func(s *aclSet) {
		for n := range work {
			work[n] += t.readLookups(s, n)
		}
	}
	add(f.acl)
	copied := copiedBytes(f.event.Path) / copiedPerWork
	note := func(c *conn, above []*aclSet) {
		if !t.watches.markNotified(c) {
			return
		}
		if n := work[min(len(c.ids), mostIdentities)] + copied; n > fewWork {
			costly = append(costly, costlyEvent{conn: c, work: n, above: above})
		}
	}
	for _, e := range t.watches.byPath[f.event.Path] {
		if e.bits&bits != 0 {
			note(e.conn, nil)
		}
	}
	if recurse != 0 && t.watches.recursive > 0 {
		t.recursiveWatches(f.above, func(c *conn, above []*aclSet) {
			for ; listed < len(above); listed++ {
				add(above[listed])
			}
			note(c, above)
		})
	}
	t.watches.changes++ // nobody was notified
	return costly
}

func totalWork(events []costlyEvent) (total int) {
	for i := range events {
		total += events[i].work
	}
	return total
}

// checkEvents does the permission checks of events, to learn which clients a list refuses: the
// lists below that one cost them nothing. The checks take at most half of maxWork. Each client
// gets an equal part of it, which grows as long as there is enough for all clients whose work is
// not known: so clients with long lists or many identities leave enough to the others.
func (f *firing) checkEvents(events []costlyEvent) {
	left, open := maxWork/2, len(events)
	for part := fewWork; open > 0 && open*part <= left; part *= 2 {
		for i := range events {
			if e := &events[i]; !e.known {
				before := e.checked
				if f.advance(e, part); e.known {
					open--
				}
				left -= e.checked - before
			}
		}
	}
}

// advance continues the checks of an event in the order of the delivery, as long as they take at
// most the work most in total.
func (f *firing) advance(e *costlyEvent, most int) {
	for {
		list, last := f.acl, len(e.above)-1
		if last >= 0 {
			list = e.above[last]
		}
		lookups := f.t.readLookups(list, len(e.conn.ids))
		if e.checked+lookups > most {
			return
		}
		e.checked += lookups
		if seen := f.t.maySee(e.conn, list); last < 0 || !seen {
			e.work, e.known = e.checked, true
			if seen {
				e.work += copiedBytes(f.event.Path) / copiedPerWork
			}
			return
		}
		e.above = e.above[:last]
	}
}

// mostWork returns the work for a client with the most identities and a recursive watch on the
// root.
func (f *firing) mostWork(recurse watchBits) int {
	t := f.t
	work := t.readLookups(f.acl, mostIdentities) + copiedBytes(f.event.Path)/copiedPerWork
	if recurse == 0 || t.watches.recursive == 0 {
		return work
	}
	for n, last := f.above, (*node)(nil); n != nil; n = n.parent {
		if last == nil || n.acl != last.acl {
			work += t.readLookups(t.acls.of(n), mostIdentities)
		}
		last = n
	}
	return work
}

// copiedBytes returns how many bytes of a path are copied for each client that gets an event.
func copiedBytes(path string) int {
	if len(path) <= longPath || len(path) > sharedPath {
		return 0
	}
	return len(path)
}

// closeCostliest closes connections so that the work for the events of the others is at most
// maxWork. Each address gets an equal part of it. What an address does not need is left to those
// that need more. Within an address, the events that take the least work are sent.
func (t *Tree) closeCostliest(events []costlyEvent) {
	type user struct {
		events []costlyEvent
		work   int
	}
	var users []*user
	byShare := make(map[Share]*user)
	for _, e := range events {
		u := byShare[e.conn.share]
		if u == nil || e.conn.share == 0 {
			u = new(user)
			users = append(users, u)
			byShare[e.conn.share] = u
		}
		u.events = append(u.events, e)
		u.work += e.work
	}
	slices.SortStableFunc(users, func(a, b *user) int { return cmp.Compare(a.work, b.work) })
	left := maxWork
	for i, u := range users {
		part := left / (len(users) - i)
		slices.SortStableFunc(u.events, func(a, b costlyEvent) int { return cmp.Compare(a.work, b.work) })
		for _, e := range u.events {
			if e.work > part {
				e.conn.lastChange = overflow
				t.overflowed = append(t.overflowed, e.conn)
				continue
			}
			part -= e.work
			left -= e.work
		}
	}
}

// closeOverflowed closes, at the end of a call, the connections that did not get all of their
// events.
func (t *Tree) closeOverflowed(out *Out) {
	for i, c := range t.overflowed {
		t.overflowed[i] = nil
		if t.conns[c.id] == c {
			t.counters.RefusedReplies++
			t.drop(c, out)
		}
	}
	t.overflowed = t.overflowed[:0]
}
