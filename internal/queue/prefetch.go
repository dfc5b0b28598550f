package queue

import "time"

// If several entries are ahead of a waiter, it must know that all of them are gone when
// its predecessor is deleted. A listing at that moment costs a round trip during which
// no client holds the lock. So the waiter lists earlier, if it can tell when: a client
// that has waited for the lock before knows the queue's pace, which is the time from one
// holder to the next. It lists when its predecessor should hold the lock. If the listing
// shows only the predecessor, the predecessor's deletion is the grant. A second watch, on
// the entry before, would be more reliable, but then each release would wake two clients.
//
// A prefetch does not change the rule for grants: a position is clear if a listing read
// after its own creates, without the entries deleted since, shows no blocker.

const (
	// maxPrefetches bounds the prefetches of one wait.
	maxPrefetches = 3
	// maxPrefetchQueue is the longest queue that is prefetched.
	maxPrefetchQueue = 256
	// maxPaces is the number of queues whose pace the core remembers.
	maxPaces = 64
)

// waits records that a position begins to wait for the entries ahead.
func (p *position) waits(now time.Duration) {
	if w := p.waiting(); w.ahead == 0 {
		w.from, w.ahead = now, len(p.ahead)
	}
}

// learn updates the pace of the queue after a wait.
func (c *Core) learn(now time.Duration, p *position) {
	w := p.wait
	if w == nil || w.ahead < 2 {
		return
	}
	step := (now - w.from) / time.Duration(w.ahead)
	last, known := c.paces[p.parent]
	switch {
	case known:
		step = (3*last + step) / 4
	case c.paces == nil || len(c.paces) >= maxPaces:
		c.paces = map[string]time.Duration{}
	}
	c.paces[p.parent] = step
}

// prefetch plans a listing for the time at which the predecessor should hold the lock,
// if the pace is known.
func (c *Core) prefetch(now time.Duration, p *position) {
	w := p.waiting()
	w.prefetch = prefetchNone
	step, known := c.paces[p.parent]
	before := len(p.ahead) - 1
	if !known || before < 1 || before > maxPrefetchQueue || w.prefetches >= maxPrefetches || !p.prefetchable() || c.standing(p.parent, p.blocker.name) != nil {
		return
	}
	// The predecessor holds the lock after one step for each entry before it. The time
	// for which the first has held is unknown, on average half a step. Steps differ, so
	// the plan is a little early if there are many: another listing follows then.
	in := step * time.Duration(8*before+1) / 9
	if in < c.recheckDelay()/2 {
		w.prefetch, w.prefetchAt = prefetchPlanned, now+in
		p.acquire.retry(w.prefetchAt)
	}
}

// cancelPrefetch cancels a planned prefetch.
func (p *position) cancelPrefetch() {
	if p.wait != nil && p.wait.prefetch == prefetchPlanned {
		p.wait.prefetch = prefetchNone
	}
}

// prefetchable reports whether an event alone can grant the position.
func (p *position) prefetchable() bool {
	return p.kind() == Exclusive && p.role != leases && p.role != fixed && !p.relist && !p.acquire.spec.Try && p.listProven()
}

// prefetchDue sends a planned prefetch when it is due, and reports whether one is in
// flight. Its answer lacks the entries whose deletion an earlier event reported, because
// a connection delivers in order.
func (c *Core) prefetchDue(now time.Duration, p *position) bool {
	w := p.wait
	if w == nil || w.prefetch != prefetchPlanned || now < w.prefetchAt {
		return p.prefetching()
	}
	w.prefetch = prefetchSent
	w.prefetches++
	p.acquire.retry(now + c.recheckDelay())
	c.send(Request{Kind: List, Path: p.parent}, func(now time.Duration, r Reply) {
		if p.clearance != notCleared || !p.prefetching() {
			return
		}
		if c.answers(now, p, r) {
			c.listed(now, p, r.Children)
		}
		p.dropPrefetch()
	})
	return true
}
