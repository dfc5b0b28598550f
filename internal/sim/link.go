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
	at := w.now + d
	if until := l.blocked[dir]; until > w.now {
		at = until + d + w.upTo(retransmit)
	}
	at = max(at, c.arrival[dir])
	c.arrival[dir] = at
	w.agenda.add(at, arrive)
}

// longestDelay is more than any way takes on a link that is not blocked.
func (w *World) longestDelay() time.Duration { return 21 * (w.cfg.Delay + w.cfg.Spread) }

// isCutOff reports whether the follower is cut off now.
func (w *World) isCutOff(l *link) bool { return w.now < l.cutOff }
