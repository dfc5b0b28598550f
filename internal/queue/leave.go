package queue

import (
	"slices"
	"time"
)

// gone says that a znode was deleted by somebody else.
func (c *Core) gone(now time.Duration, n *node) {
	if n.state == absent {
		return
	}
	cl := n.owner
	if cl == nil {
		c.missing(n)
		c.proven(now, n)
		return
	}
	n.state = absent
	if cl.phase == held {
		c.lose(now, cl, ErrGone)
		return
	}
	c.park(now, cl)
	cl.rounds++
	if cl.rounds <= 2 && c.connected() {
		c.join(now, cl)
	} else {
		cl.retry(now + retryPause)
	}
}

// park gives up all the claim's znodes, and makes it begin anew with the next
// connection or retry.
func (c *Core) park(now time.Duration, cl *claim) {
	c.vacate(now, cl, &parting{}, true, false)
	cl.rest()
	cl.phase, cl.step, cl.retaking, cl.revoked = parked, 0, false, false
}

// lose ends a hold that is no longer safe. Its znodes may well be there still.
func (c *Core) lose(now time.Duration, cl *claim, why error) {
	c.remove(cl)
	c.vacate(now, cl, &parting{id: cl.id}, false, false)
	c.signal(Signal{ID: cl.id, Kind: Lost, Err: why})
}

// fail ends a claim that can't be granted.
func (c *Core) fail(now time.Duration, cl *claim, err error) {
	c.leave(now, cl, false)
	c.signal(Signal{ID: cl.id, Kind: Failed, Err: err})
}

// leave takes the claim off the list and gives its znodes up. report says that
// a Released signal is due when they are gone.
func (c *Core) leave(now time.Duration, cl *claim, report bool) {
	c.remove(cl)
	// What is guarded by its znodes and not answered may yet be done, so that its
	// successor has to wait for their end.
	handed := cl.guards == 0
	if left := c.vacate(now, cl, &parting{id: cl.id, report: report}, true, handed); left == 0 && report {
		c.signal(Signal{ID: cl.id, Kind: Released})
	}
}

// vacate dooms the znodes at all of the claim's places, and returns how many
// there may be. The record of a hold that was lost stays, for others to see;
// else orderly says that it goes as well, and before the entry. handed says that
// this client's places behind need not ask the servers; see [Core.left].
func (c *Core) vacate(now time.Duration, cl *claim, why *parting, orderly, handed bool) int {
	places, swap := cl.places, cl.swap
	cl.places, cl.swap = nil, nil
	return c.abandon(now, places, swap, why, orderly, handed)
}

// abandon dooms the znodes at these places, and those of a downgrade under way.
// Permits go before their gate: who takes the gate next would find them in its
// way, and a try fail over nothing.
func (c *Core) abandon(now time.Duration, places []*place, s *swap, why *parting, orderly, handed bool) int {
	if i := slices.IndexFunc(places, func(p *place) bool { return p.role == gate }); i >= 0 {
		places = append(slices.Delete(slices.Clone(places), i, i+1), places[i])
	}
	var nodes []*node
	for _, p := range places {
		c.quit(p)
		if handed {
			p.handed = true
			c.give(p)
		}
		if p.record != nil && orderly {
			nodes = append(nodes, p.record)
		}
		nodes = append(nodes, p.nodes...)
	}
	if s != nil && s.missed {
		for _, n := range nodes {
			n.distrust()
		}
	}
	if s != nil {
		for _, n := range s.news {
			if orderly || n.named != forever {
				nodes = append(nodes, n)
			}
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n.state == absent })
	why.left = len(nodes)
	for _, n := range nodes {
		n.owner, n.place, n.parting = nil, nil, why
		// A downgrade under way may delete the entry itself; its outcome tells.
		n.due = why.report && n.state == alive && n.named != forever && (s == nil || slices.Contains(s.news, n))
	}
	c.doomed = append(c.doomed, nodes...)
	if !c.putOff(nodes) {
		c.disposeAll(now, nodes)
	}
	for _, p := range places {
		c.left(now, p, handed)
	}
	return len(nodes)
}
