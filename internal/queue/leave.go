package queue

import (
	"slices"
	"time"
)

// gone handles a znode that another client deleted.
func (c *Core) gone(now time.Duration, n *node) {
	if n.state == absent {
		return
	}
	acq := n.owner
	if acq == nil {
		c.missing(n)
		c.proven(now, n)
		return
	}
	n.state = absent
	if acq.phase == held {
		c.lose(now, acq, ErrGone)
		return
	}
	c.park(now, acq)
	acq.rounds++
	if acq.rounds <= 2 && c.connected() {
		c.enqueue(now, acq)
	} else {
		acq.retry(now + retryPause)
	}
}

// park leaves all the acquire's positions. The acquire starts again on the next
// connection or retry.
func (c *Core) park(now time.Duration, acq *acquire) {
	c.vacate(now, acq, &pendingRelease{}, true, false)
	acq.cancelRetry()
	acq.phase, acq.step, acq.retryingStep, acq.revoked = parked, 0, false, false
}

// lose ends a hold that is no longer safe. Its znodes may still exist.
func (c *Core) lose(now time.Duration, acq *acquire, why error) {
	c.remove(acq)
	c.vacate(now, acq, &pendingRelease{id: acq.id}, false, false)
	c.signal(Signal{ID: acq.id, Kind: Lost, Err: why})
}

// fail ends an acquire that cannot be granted.
func (c *Core) fail(now time.Duration, acq *acquire, err error) {
	c.leave(now, acq, false)
	c.signal(Signal{ID: acq.id, Kind: Failed, Err: err})
}

// failLocked fails a try because of the holder whose znode is at path; path may be
// empty.
func (c *Core) failLocked(now time.Duration, acq *acquire, path string) {
	c.leave(now, acq, false)
	c.signal(Signal{ID: acq.id, Kind: Failed, Err: ErrLocked, Blocker: path})
}

// leave removes the acquire and deletes its znodes. If report is set, a Released signal
// follows when they are gone.
func (c *Core) leave(now time.Duration, acq *acquire, report bool) {
	c.remove(acq)
	// The servers may still apply an unanswered guarded write, so the successor has to
	// wait until the znodes are deleted.
	handed := acq.guards == 0
	if left := c.vacate(now, acq, &pendingRelease{id: acq.id, report: report}, true, handed); left == 0 && report {
		c.signal(Signal{ID: acq.id, Kind: Released})
	}
}

// vacate makes the znodes at all of the acquire's positions pending deletes, and returns
// how many may exist. If orderly is set, the record is deleted too, before the entry. The
// record of a lost hold stays for other clients to find. If handed is set, this client's
// successors need not ask the servers; see [Core.left].
func (c *Core) vacate(now time.Duration, acq *acquire, why *pendingRelease, orderly, handed bool) int {
	positions, swap := acq.positions, acq.swap
	acq.positions, acq.swap = nil, nil
	return c.abandon(now, positions, swap, why, orderly, handed)
}

// abandon makes the znodes at these positions pending deletes, and those of a downgrade
// in progress. Permits are deleted before their gate. Otherwise the next acquire at the
// gate would find them, and a try would fail without need.
func (c *Core) abandon(now time.Duration, positions []*position, s *swap, why *pendingRelease, orderly, handed bool) int {
	if i := slices.IndexFunc(positions, func(p *position) bool { return p.role == gate }); i >= 0 {
		positions = append(slices.Delete(slices.Clone(positions), i, i+1), positions[i])
	}
	c.backlog.countLeft(positions)
	var nodes []*node
	var marked []*position
	for _, p := range positions {
		if handed && c.marks(now, p, s) {
			marked = append(marked, p)
		}
		c.leftAlone(p, handed && s == nil)
		c.leaveQueue(p)
		if handed {
			p.membership = handedOver
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
	for _, n := range nodes {
		if n.fixed && n.unsure && n.state == absent {
			n.state = unknown // after a move of the session, the servers may still apply an earlier create
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n.state == absent })
	why.left = len(nodes)
	for _, n := range nodes {
		n.owner, n.position, n.parting = nil, nil, why
		// A downgrade in progress may delete the entry itself; its outcome shows that.
		n.due = why.report && n.state == alive && n.named != forever && (s == nil || slices.Contains(s.news, n))
	}
	c.pendingDeletes = append(c.pendingDeletes, nodes...)
	if len(marked) > 0 || !c.putOff(nodes) {
		for _, p := range marked {
			for _, n := range p.nodes {
				n.state = deleting // below, by one multi
			}
		}
		c.disposeAll(now, nodes)
		for _, p := range marked {
			c.releaseMarked(p)
		}
	}
	for _, p := range positions {
		c.left(now, p, handed)
	}
	return len(nodes)
}
