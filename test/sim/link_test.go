package sim

import "time"

// The directions of a link.
const (
	up   = 0 // to the server
	down = 1 // to the client
)

// link is the way between one machine and the server. As in TCP nothing is lost
// in the middle: what can't get through waits for the link, until the
// connection is given up.
type link struct {
	delay, spread time.Duration
	blocked       [2]time.Duration // nothing arrives before, by direction
	// cutOff is until when the follower at the link's end, to which the client
	// is connected, is cut off from its leader, which is the server. It answers
	// pings by itself meanwhile, and nothing else.
	cutOff time.Duration
	// All takes longer by extra until slow is over; pieces of few bytes come a gap
	// apart until trickle is; and no connection can be made until refused is.
	slow, extra  time.Duration
	trickle, gap time.Duration
	refused      time.Duration
}

// sound reports whether nothing is amiss with the link now.
func (l *link) sound(now time.Duration) bool {
	return max(l.blocked[up], l.blocked[down], l.cutOff, l.slow, l.trickle, l.refused) < now
}

// repair ends all faults of the link, except that a follower is cut off. It reports
// whether something was stuck.
func (l *link) repair(now time.Duration) bool {
	stuck := max(l.blocked[up], l.blocked[down], l.slow, l.trickle) > now
	*l = link{delay: l.delay, spread: l.spread, cutOff: l.cutOff}
	return stuck
}

// piece draws how much of n bytes goes over the link at once.
func (w *World) piece(l *link, n int) int {
	switch {
	case l.trickle > w.now:
		return min(n, 1+w.rng.IntN(4))
	case w.oneIn(16):
		return 1 + w.rng.IntN(n)
	}
	return n
}

// retransmit is how long TCP waits at most until it tries again.
const retransmit = 300 * time.Millisecond

// transit plans what a connection sends to arrive, in order.
func (w *World) transit(c *conn, dir int, arrive func()) {
	l := &c.machine.link
	d := l.delay + w.upTo(l.spread)
	if w.oneIn(100) {
		d *= time.Duration(2 + w.rng.IntN(19))
	}
	if l.slow > w.now {
		d += l.extra
	}
	at := w.now + d
	if until := l.blocked[dir]; until > w.now {
		at = until + d + w.upTo(retransmit)
	}
	if last := c.arrival[dir]; last+l.gap < l.trickle {
		last += l.gap
		at = max(at, last)
	}
	at = max(at, c.arrival[dir])
	c.arrival[dir] = at
	w.agenda.add(at, arrive)
}

// longestDelay is more than any way takes on a link that is not blocked.
func (w *World) longestDelay() time.Duration { return 21 * (w.cfg.Delay + w.cfg.Spread) }

// isCutOff reports whether the follower is cut off now.
func (w *World) isCutOff(l *link) bool { return w.now < l.cutOff }
