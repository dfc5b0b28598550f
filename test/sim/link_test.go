package sim

import "time"

// The directions of a link.
const (
	up   = 0 // to the server
	down = 1 // to the client
)

// link connects a machine and the server. As in TCP, bytes that cannot pass wait until the
// link is repaired or the connection is closed.
type link struct {
	delay, spread time.Duration
	blocked       [2]time.Duration // no byte arrives before this time, by direction
	// cutOff is the time until which the client's follower is cut off from its leader, the
	// server. The follower answers only pings.
	cutOff time.Duration
	// Until slow, messages take extra longer. Until trickle, bytes arrive in small pieces with
	// a gap in between. Until refused, no connection can be opened.
	slow, extra  time.Duration
	trickle, gap time.Duration
	refused      time.Duration
}

// sound reports whether the link has no fault.
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

// piece draws how many of n bytes arrive at once.
func (w *World) piece(l *link, n int) int {
	switch {
	case l.trickle > w.now:
		return min(n, 1+w.rng.IntN(4))
	case w.oneIn(16):
		return 1 + w.rng.IntN(n)
	}
	return n
}

// retransmit is the longest time after which TCP retransmits.
const retransmit = 300 * time.Millisecond

// transit schedules the arrival of what a connection sends, in order.
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

// longestDelay returns more than the delay of any message on a link without faults.
func (w *World) longestDelay() time.Duration { return 21 * (w.cfg.Delay + w.cfg.Spread) }

// isCutOff reports whether the follower is cut off.
func (w *World) isCutOff(l *link) bool { return w.now < l.cutOff }
