package queue

import (
	"slices"
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
}

// enterQueue adds a position to its queue.
func (c *Core) enterQueue(p *position) {
	l := c.queues[p.parent]
	if l == nil {
		l = &clientQueue{}
		c.queues[p.parent] = l
	}
	l.positions = append(l.positions, p)
}

// leaveQueue removes a position from its queue.
func (c *Core) leaveQueue(p *position) {
	p.discredited = !p.listProven()
	p.membership, p.predecessor = abandoned, nil
	if l := c.queues[p.parent]; l != nil {
		if i := slices.Index(l.positions, p); i >= 0 {
			l.positions = slices.Delete(l.positions, i, i+1)
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

// left updates this client's successors of a position that was left. handed says that
// its owner has finished with it. If not, as after a lost hold, the successors ask the
// servers.
func (c *Core) left(now time.Duration, e *position, handed bool) {
	l := c.queues[e.parent]
	if l == nil || e.role == leases || e.role == fixed || c.closed != nil {
		return
	}
	for _, p := range slices.Clone(l.positions) {
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
	p.blocker = blocker{}
	if !c.connected() {
		return // the next connection begins with a listing
	}
	b, blocked := Blocker(p.kind(), p.ahead)
	switch {
	case !blocked && !p.relist, blocked && c.standing(p.parent, b.Name) != nil:
		c.decide(now, p)
	default:
		c.list(p)
	}
}

// drop removes a position that was left from the list of entries ahead, and reports
// whether it was on the list.
func (p *position) drop(e *position) bool {
	own := func(a Entry) bool { return e.owned(a.Name) }
	at := slices.IndexFunc(p.ahead, own) // usually a hold, which is first
	switch {
	case at < 0:
		return false
	case e.clearance == clearedAlone:
		for at < len(p.ahead) && own(p.ahead[at]) {
			at++
		}
		p.ahead = p.ahead[at:]
		if p.relist { // removing entries can only clear it
			p.setRelist()
		}
	default:
		p.without(own)
	}
	return true
}

// without removes entries from the list of entries ahead. It copies the list, which may
// share memory with a successor's list.
func (p *position) without(gone func(Entry) bool) {
	p.ahead = slices.DeleteFunc(slices.Clone(p.ahead), gone)
}

// discount removes the entries that this client has left from a new listing.
func (c *Core) discount(p *position) {
	l := c.queues[p.parent]
	if l == nil || len(l.given) == 0 {
		return
	}
	for i := len(p.ahead) - 1; i >= 0; i-- {
		e := l.given[p.ahead[i].Name]
		if e == nil || e.names != p.names || e.role != p.role {
			continue
		}
		p.drop(e)
		i = min(i, len(p.ahead))
	}
}

// setRelist sets relist for the present list.
func (p *position) setRelist() {
	p.relist = p.delay > 0 || p.kind() == Exclusive && slices.ContainsFunc(p.ahead, Entry.Writer)
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
	for _, p := range slices.Backward(l.positions) {
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
	if own == nil || p.acquire.spec.Try {
		c.watchBlocker(now, p)
		return
	}
	if p.predecessor != nil {
		c.watchOwnNodes(own.acquire) // to prove that it exists; see [Core.follow]
	}
	p.acquire.retry(now + c.recheckDelay())
	c.signalWaiting(p, p.parent+"/"+p.blocker.name, len(p.ahead), own.acquire.spec.Data)
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
