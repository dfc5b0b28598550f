package queue

// A client that acquires the same free lock again and again needs no listing: if the last
// entry that it deleted had nothing ahead, and the number of its new entry directly
// follows, no entry was created in between, so nothing is ahead of the new one either.
// Between the two entries the parent may be empty, and then the servers or another client may
// delete it. A [parentWatch] shows whether both numbers are of one parent. See
// spec/nolisting.pml.
//
// Where the guess fails, the client lists the queue a round trip later than it otherwise
// would. So it guesses only if its last two entries had consecutive numbers.

// soleUse is what a client knows about a lock that it has acquired without waiting.
type soleUse struct {
	last *position // the last position that was left; nil if it had to wait
	run  int       // how often in a row the next entry had the next number
}

// leftAlone records that a position was left; handed says that its owner had finished with
// it.
func (c *Core) leftAlone(p *position, handed bool) {
	alone := handed && p.role == member && p.clearance == clearedAlone && !p.waited && p.delay == 0 &&
		len(p.nodes) == 1 && len(p.were) == 0 && p.nodes[0].state == alive && p.nodes[0].named == byGUID
	if alone {
		if w := c.parentWatchOf(p.parent); w != nil {
			w.sole.last = p
		}
		return
	}
	if w := c.parentWatches[p.parent]; w != nil {
		w.sole.last = nil
		if p.waited {
			w.sole.run = 0
		}
	}
}

// predecessorAlone returns the position that was left last, if the next one is likely to
// have the next number, and that would prove that nothing is ahead of it.
func (c *Core) predecessorAlone(parent string) *position {
	w := c.parentWatches[parent]
	if w == nil || w.sole.run == 0 || w.sole.last == nil || w.state != parentWatched || w.sole.last.watchedBy != w.req {
		return nil
	}
	return w.sole.last
}

// isAlone reports whether nothing is ahead of a position whose number directly follows that
// of q, which was left.
func (c *Core) isAlone(p, q *position) bool {
	w, last := c.parentWatches[p.parent], q.nodes[0]
	return w != nil && w.sole.last == q && p.sharesParent(q) && last.wentAt > 0 && last.wentAt < p.nodes[0].czxid
}

// listedAlone records what a listing showed of a position.
func (c *Core) listedAlone(p *position) {
	w := c.parentWatches[p.parent]
	if w == nil || w.sole.last == nil {
		return
	}
	if p.membership != present || p.clearance != clearedAlone || p.waited || !p.next(w.sole.last.nodes[0]) {
		w.sole.run = 0
		return
	}
	w.sole.run++
	if w.sole.run >= runBeforeWatch {
		c.watchParent(p.parent, w)
	}
}
