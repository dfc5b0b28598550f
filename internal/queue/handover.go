package queue

import (
	"slices"
	"strings"
	"time"
)

// Several entries of one client may be in one queue. If the client leaves a position,
// it knows that without an event from the servers. So it removes the position from the
// lists of its own successors at once, and sends the delete afterwards. The order and
// the tokens do not change. spec/handover.pml has the rule, and shows what breaks
// without each part:
//
//   - If the position was exclusive and was cleared, the entries that were ahead of it
//     are removed as well, because they were gone when it was cleared. In any other
//     case only the position is removed: a cancelled waiter proves nothing about the
//     entries ahead of it, and a reader proves nothing about readers that were writers.
//   - [Blocker] decides about the remaining entries. The turn itself grants nothing.
//   - Nothing is granted until all events of one read were delivered (see
//     [Core.Release]): the deletion of the successor's own znode may be among them.
//   - Nothing is handed over while a guarded write of the hold is unanswered, because
//     the servers may apply it as long as the hold's znode exists.
//
// So a waiter does not watch an entry of its own client for its deletion.

// A clientQueue is this client's part in one queue.
type clientQueue struct {
	positions []*position          // in order of arrival
	latest    *position            // the last position that was left
	given     map[string]*position // positions that were left, by the names of their entries that may still exist

	vetted   map[string]bool       // names of entries that zklock made: see [Core.checkForeign]
	vettings map[string][]*vetting // what waits for the read of an entry, by its name

	// If there are many positions, these are their indexes. Otherwise they are nil.
	entries  map[string]*position   // by the names of their entries
	watchers map[string][]*position // by the names of the blockers and marks that they watch
}

// enterQueue adds a position to its queue.
func (c *Core) enterQueue(p *position) {
	l := c.queues[p.parent]
	if l == nil {
		l = &clientQueue{}
		c.queues[p.parent] = l
	}
	l.positions = append(l.positions, p)
	if l.entries == nil && len(l.positions) > smallQueue {
		l.entries, l.watchers = map[string]*position{}, map[string][]*position{}
		for _, p := range l.positions {
			l.enter(p)
			for _, name := range p.watchedNames() {
				l.watchers[name] = append(l.watchers[name], p)
			}
		}
	}
}

// enter adds the names of a position's entries to the index of a queue, if it has one.
func (l *clientQueue) enter(p *position) {
	if l == nil || l.entries == nil {
		return
	}
	for _, n := range p.nodes {
		if n.state == alive {
			l.entries[n.name] = p
		}
	}
}

// exit removes a name of a position from the index. Node locks share a name.
func (l *clientQueue) exit(p *position, name string) {
	if l.entries[name] == p {
		delete(l.entries, name)
	}
}

// concerned returns the positions that an event may concern. For an event about an entry or a
// mark, these are the one whose entry it is, and those that watch it as their blocker or its mark.
func (l *clientQueue) concerned(kind EventKind, path string) []*position {
	if l.entries == nil || kind == Children {
		return slices.Clone(l.positions) // an acquire whose own znode is gone leaves its positions
	}
	name := baseOf(path)
	all := slices.Clone(l.watchers[name])
	if p := l.entries[name]; p != nil && !slices.Contains(all, p) {
		all = append(all, p)
	}
	return all
}

// watches adds a position to those that watch their blocker and, if mark is set, its mark.
func (c *Core) watches(p *position, mark bool) {
	before := len(p.watchedNames())
	p.watching, p.watchingMark = true, p.watchingMark || mark
	if l := c.queues[p.parent]; l != nil && l.watchers != nil {
		for _, name := range p.watchedNames()[before:] {
			l.watchers[name] = append(l.watchers[name], p)
		}
	}
}

// unwatches undoes watches.
func (c *Core) unwatches(p *position) {
	if l := c.queues[p.parent]; l != nil && l.watchers != nil {
		for _, name := range p.watchedNames() {
			all := l.watchers[name]
			if i := slices.Index(all, p); i >= 0 { // usually the first one
				all = deleteAt(all, i)
			}
			if l.watchers[name] = all; len(all) == 0 {
				delete(l.watchers, name)
			}
		}
	}
	p.watching, p.watchingMark = false, false
}

// watchedNames returns the names of the znodes that the position watches: its blocker, and the
// mark of that.
func (p *position) watchedNames() []string {
	switch {
	case p.watchingMark:
		return []string{p.blocker.name, baseOf(p.markOf(p.blocker.name))}
	case p.watching:
		return []string{p.blocker.name}
	}
	return nil
}

// leaveQueue removes a position from its queue.
func (c *Core) leaveQueue(p *position) {
	c.block(p, blocker{})
	c.quitSizeWatch(p)
	p.discredited = !p.listProven()
	p.membership, p.predecessor = abandoned, nil
	if l := c.queues[p.parent]; l != nil {
		if i := slices.Index(l.positions, p); i >= 0 {
			l.positions = deleteAt(l.positions, i)
		}
		for _, n := range p.nodes {
			l.exit(p, n.name)
		}
		for _, name := range p.were {
			l.exit(p, name)
		}
		c.close(p.parent, l)
	}
}

// close forgets a queue in which this client has nothing.
func (c *Core) close(parent string, l *clientQueue) {
	if len(l.positions)+len(l.given) == 0 {
		delete(c.queues, parent)
	}
}

// give keeps the entry names of a position that is left, for listings that still show
// them. It keeps no reusable names.
func (c *Core) give(p *position) {
	for _, n := range p.nodes {
		if n.name == "" || n.named != byGUID || n.state == absent {
			continue
		}
		l := c.queues[p.parent]
		if l == nil {
			l = &clientQueue{}
			c.queues[p.parent] = l
		}
		if l.given == nil {
			l.given = map[string]*position{}
		}
		l.given[n.name], l.latest = p, p
	}
}

// forget drops the name of a znode that is gone.
func (c *Core) forget(n *node) {
	if l := c.queues[n.parent]; l != nil {
		delete(l.given, n.name)
		c.close(n.parent, l)
	}
}

// smallQueue is the number of entries that a position keeps at most, and the number of
// positions up to which all are visited when one is left. A longer list is reduced to the
// blocker, and then only the positions that it blocks are visited. So neither the time of a
// handover nor the memory of a waiter grows with the queue.
const smallQueue = 16

// left updates this client's successors of a position that was left. handed says that
// its owner has finished with it. If not, as after a lost hold, the successors ask the
// servers.
func (c *Core) left(now time.Duration, e *position, handed bool) {
	l := c.queues[e.parent]
	if l == nil || e.role == leases || e.role == fixed || c.closed != nil {
		return
	}
	successors := e.followers
	if len(l.positions) <= smallQueue {
		successors = l.positions
	}
	for _, p := range slices.Clone(successors) {
		if p.membership != present || p.clearance != notCleared || p.acquire.phase != working {
			continue
		}
		if handed && p.names == e.names && p.role == e.role && e.certain() {
			c.inherit(now, p, e)
		}
		if p.membership == present && p.query == idle && e.owned(p.blocker.name) && c.connected() {
			c.watchBlocker(now, p)
		}
	}
}

// certain reports whether the entries with the position's names are its own. A reusable
// name may belong to another entry by now, unless a watch is set on it.
func (p *position) certain() bool {
	return !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.named != byGUID && !n.seen })
}

// inherit removes a position that was left from the list of a successor.
func (c *Core) inherit(now time.Duration, p, e *position) {
	if !p.drop(e) || p.query != idle || p.blocker.name == "" || !p.struck(p.blocker.name) {
		return
	}
	c.block(p, blocker{})
	if !c.connected() {
		return // the next connection begins with a listing
	}
	b, blocked := Blocker(p.kind(), p.ahead)
	switch {
	case !blocked && !p.relist && !p.others, blocked && c.standing(p.parent, b.Name) != nil:
		c.decide(now, p)
	default:
		c.list(p)
	}
}

// drop removes a position that was left from what is kept of the entries ahead, and
// reports whether it was there.
func (p *position) drop(e *position) bool {
	own := func(a Entry) bool { return e.owned(a.Name) }
	at := slices.IndexFunc(p.ahead, own)
	switch {
	case at < 0:
		return false
	case e.clearance == clearedAlone:
		for at < len(p.ahead) && own(p.ahead[at]) {
			at++
		}
		p.clearUpTo(at)
	case p.others && p.kind() == Exclusive && e.kind() == Exclusive && e.listed && e.clearance == notCleared:
		// What was ahead of e is ahead of its successor, and as certain.
		p.ahead, p.hidden, p.others, p.relist = e.ahead, e.hidden, e.others, e.relist || p.delay > 0
		p.discredited = p.discredited || e.discredited
	default:
		p.without(own)
	}
	return true
}

// without removes entries from what is kept of the entries ahead. It copies the list,
// which a successor may share.
func (p *position) without(gone func(Entry) bool) {
	p.ahead = slices.DeleteFunc(slices.Clone(p.ahead), gone)
}

// discount removes the entries that this client has left from a new listing of the entries
// ahead, which it does not change.
func (c *Core) discount(p *position, ahead []Entry) []Entry {
	l := c.queues[p.parent]
	if l == nil || len(l.given) == 0 {
		return ahead
	}
	for i := len(ahead) - 1; i >= 0; i-- {
		e := l.given[ahead[i].Name]
		switch {
		case e == nil || e.names != p.names || e.role != p.role:
		case e.clearance == clearedAlone: // the entries ahead of it are gone as well
			return ahead[i+1:]
		default:
			ahead = slices.Delete(slices.Clone(ahead), i, i+1)
		}
	}
	return ahead
}

// setAhead keeps a copy of a list of the entries ahead. Of a long one it keeps the blocker,
// and whether other entries block the position too. A try keeps the list, because whose
// entries these are decides.
func (p *position) setAhead(list []Entry) {
	p.hidden, p.others = 0, false
	p.relist = p.delay > 0 || p.kind() == Exclusive && slices.ContainsFunc(list, Entry.Writer)
	if len(list) <= smallQueue || p.acquire.spec.Try {
		p.ahead = slices.Clone(list)
		return
	}
	b, blocked := Blocker(p.kind(), list)
	if !blocked {
		p.ahead, p.hidden = nil, len(list)
		return
	}
	at := slices.Index(list, b)
	_, p.others = Blocker(p.kind(), list[:at])
	b, _ = p.names.Parse(strings.Clone(b.Name)) // a copy, so that the other names are freed
	p.ahead, p.hidden = []Entry{b}, len(list)-1
}

// setBehind sets the entries ahead to those of a position of this client, whose number is
// the one before, and to those ahead of it.
func (p *position) setBehind(q *position) {
	list := make([]Entry, 0, len(q.ahead)+len(q.nodes))
	list = append(list, q.ahead...)
	for _, n := range q.nodes {
		e, _ := p.names.Parse(n.name)
		list = append(list, e)
	}
	if q.hidden == 0 {
		p.setAhead(list)
		return
	}
	p.ahead, p.hidden, p.others = list[len(list)-1:], q.hidden+len(list)-1, true
	p.relist = p.delay > 0 || q.relist || slices.ContainsFunc(list, Entry.Writer)
}

// clearUpTo removes the first n of the kept entries, and everything ahead of them.
func (p *position) clearUpTo(n int) {
	if p.hidden == 0 {
		p.setAhead(p.ahead[n:])
		return
	}
	p.ahead, p.others, p.relist = p.ahead[n:], false, p.delay > 0
	if p.kind() == Exclusive { // the hidden entries of a reader may be readers behind them
		p.hidden = 0
	}
}

// struck reports whether no entry of this name is on the position's list any more.
func (p *position) struck(name string) bool {
	for _, a := range slices.Backward(p.ahead) { // usually the last one
		if a.Name == name {
			return false
		}
	}
	return true
}

// owned reports whether an entry of this name is the position's, or was before a
// downgrade.
func (p *position) owned(name string) bool {
	return name != "" && (slices.ContainsFunc(p.nodes, func(n *node) bool { return n.name == name }) || slices.Contains(p.were, name))
}

// standing returns this client's position that an entry belongs to, if the entry is
// known to exist.
func (c *Core) standing(parent, name string) *position {
	l := c.queues[parent]
	if l == nil {
		return nil
	}
	own := l.positions
	if l.entries != nil {
		p := l.entries[name]
		if p == nil {
			return nil
		}
		own = []*position{p}
	}
	for _, p := range slices.Backward(own) {
		for _, n := range p.nodes {
			if n.name == name && n.state == alive {
				return p
			}
		}
	}
	return nil
}

// awaitBlocker sets a watch on the blocker, unless it is an entry of this client, which
// then knows of its deletion.
func (c *Core) awaitBlocker(now time.Duration, p *position) {
	own := c.standing(p.parent, p.blocker.name)
	if own != nil {
		p.follows(own)
	}
	if own == nil || p.acquire.spec.Try {
		c.watchBlocker(now, p)
		return
	}
	if p.predecessor != nil && !p.predecessorProven() {
		c.watchOwnNodes(own.acquire) // to prove that it exists; see [Core.follow]
	}
	p.acquire.retry(now + c.recheckDelay())
	c.signalWaiting(p, p.parent+"/"+p.blocker.name, p.entriesAhead(), own.acquire.spec.Data)
}

// follows records that a position of this client blocks the position.
func (p *position) follows(own *position) {
	if p.awaits != own {
		p.unfollow()
		p.awaits, own.followers = own, append(own.followers, p)
	}
}

// unfollow undoes follows.
func (p *position) unfollow() {
	if e := p.awaits; e != nil {
		if i := slices.Index(e.followers, p); i >= 0 {
			e.followers = slices.Delete(e.followers, i, i+1)
		}
		p.awaits = nil
	}
}

// Entries returns the paths of an acquire's znodes whose names are known. It is for
// tests.
func (c *Core) Entries(id ID) []string {
	acq := c.acquireByID(id)
	if acq == nil {
		return nil
	}
	var all []string
	for _, n := range acq.nodes() {
		if n.name != "" {
			all = append(all, n.path())
		}
	}
	return all
}

// Passable reports whether a hold may be passed on to another owner unchanged. It must
// be held with some margin before the deadline, and the former owner must have no
// operation in flight that depends on it.
func (c *Core) Passable(now time.Duration, id ID) bool {
	c.advance(now)
	acq := c.acquireByID(id)
	return acq != nil && acq.phase == held && acq.swap == nil && !acq.revoked && acq.guards == 0 && !c.undrained &&
		c.connected() && !c.beat.jeopardy && c.deadline.Ahead(now) >= c.session.Timeout/8
}
