package queue

import "time"

// A watch on the acquire's own znode reports at once if another client deletes it. A
// waiter sets one when it begins to wait, and keeps it when it is granted. An acquire
// that did not wait has none at its grant: a watch takes a request, and most holds are
// short. So the core sets it when the hold has lasted for watchAfter, and in the same way for
// a waiter that may get the lock from its own client soon. If the znode is gone by then, the
// answer shows that. The release of a shorter hold learns it from the answer to its delete;
// see [Core.missing].

// watchAfter is how long an acquire holds, or waits behind its own client, before its znodes are
// watched.
const watchAfter = 100 * time.Millisecond

// unwatched is a list of acquires and the times at which the core watches their znodes.
// The delay is the same for all, so the list is in order.
type unwatched struct {
	acquires []unwatchedAcquire
	head     int // how many of them have ended or are watched
}

type unwatchedAcquire struct {
	id ID
	at time.Duration
}

// add appends an acquire. It reuses the space of earlier ones if more than half is free.
func (u *unwatched) add(id ID, at time.Duration) {
	if u.head > len(u.acquires)/2 {
		u.acquires = u.acquires[:copy(u.acquires, u.acquires[u.head:])]
		u.head = 0
	}
	u.acquires = append(u.acquires, unwatchedAcquire{id: id, at: at})
}

// watchAt returns the next acquire whose znodes the core has to watch, and when; 0 is never.
func (c *Core) watchAt() (at time.Duration, acq *acquire) {
	for u := &c.unwatched; u.head < len(u.acquires); u.head++ {
		next := u.acquires[u.head]
		if acq := c.acquireByID(next.id); acq != nil {
			return next.at, acq
		}
	}
	return 0, nil
}

// watchLater plans a watch on an acquire's znodes, unless one is planned.
func (c *Core) watchLater(now time.Duration, acq *acquire) {
	if !acq.watchPlanned {
		acq.watchPlanned = true
		c.unwatched.add(acq.id, now+watchAfter)
	}
}

// watchDue watches the znodes of acquires for which watchAfter has passed. During a
// downgrade it is unknown which znodes those are, so that hold waits again.
func (c *Core) watchDue(now time.Duration) {
	for at, acq := c.watchAt(); at != 0 && at <= now; at, acq = c.watchAt() {
		c.unwatched.head++
		acq.watchPlanned = false
		if acq.swap != nil {
			c.watchLater(now, acq)
		} else {
			c.watchOwnNodes(acq)
		}
	}
}

// ownWatch is what is known of the watch on one of the client's own znodes.
type ownWatch uint8

const (
	ownUnwatched ownWatch = iota // no watch is needed yet
	ownWanted                    // a watch is to be set: there was no connection, or no answer
	ownRequested                 // the request that sets it is in flight
	ownAnswered                  // the request was answered
)

// requested reports whether the request that sets the watch is in flight or answered.
func (w ownWatch) requested() bool { return w >= ownRequested }

// answer records the answer to the request; set is false if it set no watch.
func (w *ownWatch) answer(set bool) {
	switch {
	case *w == ownRequested && set:
		*w = ownAnswered
	case *w == ownRequested:
		*w = ownWanted
	}
}

// fail records that the request that sets the watch got no answer.
func (w *ownWatch) fail() {
	if w.requested() {
		*w = ownWanted
	}
}

// watchOwnNodes sets watches on the acquire's own znodes. A waiter then learns at once if
// another client deletes one, in order with the other events.
func (c *Core) watchOwnNodes(acq *acquire) {
	for _, n := range acq.nodes() {
		if n.state == alive && !n.watch.requested() {
			c.watchOwn(n)
		}
	}
}

// watchOwn sets a watch on one of the client's own znodes.
func (c *Core) watchOwn(n *node) {
	n.watch, n.seen, n.bound, n.watchReq = ownRequested, false, false, c.lastReq+1
	c.send(Request{Kind: Get, Path: n.path(), Watch: true}, func(now time.Duration, r Reply) {
		if n.named == byGUID && n.replaced(r) {
			r.Code = NoNode
		}
		n.seen = r.Code == OK
		n.watch.answer(true)
		c.proven(now, n)
		acq := n.owner
		if acq == nil || n.state != alive {
			return
		}
		switch r.Code {
		case OK:
			switch {
			case n.named != byData:
			case n.same(r):
				n.czxid = r.Czxid
			default:
				c.vanished(now, n) // another znode has the name
				return
			}
			c.read(n, r)
		case NoNode:
			c.vanished(now, n)
		case Unknown, NotApplied:
			n.watch.fail()
			acq.retry(now + retryPause)
		case SessionOver:
		default:
			// A hold needs no watch if heartbeats check this very znode at a quorum.
			if acq.phase != held || c.syncs() || n.named == byData {
				c.unverifiable(now, n, r.Err)
			}
		}
	})
}

// replaced reports whether a Get of the node read another znode, because another client
// deleted the node and created a znode with its name. A znode of the node's own session is
// the node, also if the server stated a wrong czxid in the answer to the create.
func (n *node) replaced(r Reply) bool {
	return r.Code == OK && r.Czxid != n.czxid && r.Czxid > 0 && n.czxid > 0 && r.Owner != n.session
}

// unbind records that the watches of the last connection are gone that the session does not
// set again.
func (c *Core) unbind() {
	c.unproveParentWatches()
	lost := func(n *node) {
		if n.bound {
			n.watch.fail()
			n.seen, n.bound, n.watchReq = false, false, 0
		}
	}
	for _, acq := range c.acquires {
		for _, n := range acq.nodes() {
			lost(n)
		}
	}
	for _, n := range c.pendingDeletes {
		lost(n)
	}
}
