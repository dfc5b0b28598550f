package queue

import (
	"slices"
	"time"
)

// A heartbeat asks a quorum about all of a session's entries, every eighth of
// the session's timeout. It proves the session alive to the leader (see
// Deadline), and it tells of an entry that somebody deleted. There is one a
// session, however many locks it holds. It goes on while nothing is held, with
// an empty multi, so that the next acquire finds a deadline ahead and needs one
// round trip.
//
// With [Config.Sync] most heartbeats are a sync instead, which the leader answers
// without its log and the other servers. It tells of no entry, so a watch stands on
// each: what a server tells of watches goes out before a sync's answer, and the
// leader has told the server of all that it had decided. A quorum is asked where
// there is something to prove: of a new connection, and for a grant.
type heartbeat struct {
	sentAt     time.Duration // when the last one went out; 0 before the first
	begunAt    time.Duration // when this connection began
	answeredAt time.Duration // when a quorum last answered, or the leader a sync
	underWay   int           // how many are unanswered
	jeopardy   bool
	hurry      bool // a claim is ready but for the proof
}

// maxUnderWay bounds the heartbeats without an answer on a stalled connection.
const maxUnderWay = 4

// checksPerMulti bounds one heartbeat's frame: paths are some 600 bytes at the
// most, a server's limit on frames is 1 MiB.
const checksPerMulti = 512

// restart is for a new connection. That a session was resumed on it shows no
// quorum, unlike that one was made.
func (b *heartbeat) restart(now time.Duration) {
	b.sentAt, b.begunAt, b.underWay = 0, now, 0
	if b.answeredAt == 0 {
		b.answeredAt = now
	}
}

// nextAt returns when the next heartbeat is due, 0 for never.
func (b *heartbeat) nextAt(timeout time.Duration) time.Duration {
	switch {
	case b.underWay >= maxUnderWay:
		return 0
	case b.hurry:
		return b.sentAt + timeout/32
	}
	return max(b.sentAt, b.begunAt) + timeout/8
}

// overdueAt returns when holds come into jeopardy, 0 for never.
func (b *heartbeat) overdueAt(timeout time.Duration) time.Duration {
	if b.answeredAt == 0 {
		return 0
	}
	return b.answeredAt + timeout/3
}

func (b *heartbeat) overdue(now, timeout time.Duration) bool {
	at := b.overdueAt(timeout)
	return at != 0 && now >= at
}

// Heard returns when the servers last answered a heartbeat, or when the session's
// first connection began if none was answered yet. There is no such time without a
// session.
func (c *Core) Heard() (at time.Duration, ok bool) {
	return c.beat.answeredAt, c.beat.answeredAt != 0
}

// heartbeat sends one if it is due.
func (c *Core) heartbeat(now time.Duration) {
	at := c.beat.nextAt(c.session.Timeout)
	if !c.connected() || at == 0 || now < at {
		return
	}
	if c.cheap() && !c.beat.hurry {
		c.beat.sentAt = now
		c.sync()
		return
	}
	c.beatNow(now)
}

// cheap reports whether a sync does for the next heartbeat.
func (c *Core) cheap() bool { return c.syncs() && !c.deadline.open }

// syncs reports whether heartbeats are syncs. In a session of less than four ticks
// a leader that was deposed would answer them for too long.
func (c *Core) syncs() bool { return c.cfg.Sync && c.session.Timeout >= 4*c.cfg.Tick }

// sync asks the leader, behind a watch on every entry.
func (c *Core) sync() {
	for _, cl := range c.claims {
		if cl.swap == nil {
			c.watchOwns(cl)
		}
	}
	conn := c.session.Conn
	c.beat.underWay++
	c.send(Request{Kind: Sync, Path: "/"}, func(_ time.Duration, r Reply) {
		if c.session.Conn == conn {
			c.beat.underWay--
		}
		if r.Code == OK && r.Conn == c.session.Conn && c.connected() {
			c.deadline.Heard(r.Sent, r.Received)
			c.alive(r.Received)
		}
	})
}

// beatNow sends a heartbeat over all entries that the session is known to have.
func (c *Core) beatNow(now time.Duration) {
	c.beat.sentAt = now
	var nodes []*node
	for _, cl := range c.claims {
		if cl.swap != nil {
			continue // which of its entries is there is not known
		}
		for _, p := range cl.places {
			for _, n := range p.nodes {
				if n.state == alive {
					nodes = append(nodes, n)
				}
			}
		}
	}
	for len(nodes) > checksPerMulti {
		c.check(nodes[:checksPerMulti:checksPerMulti])
		nodes = nodes[checksPerMulti:]
	}
	c.check(nodes)
}

// check asks a quorum about these entries in one multi.
func (c *Core) check(nodes []*node) {
	conn := c.session.Conn
	c.beat.underWay++
	ask := Request{Kind: Check, Paths: paths(nodes)}
	c.send(ask, func(now time.Duration, r Reply) {
		if c.session.Conn == conn {
			c.beat.underWay--
		}
		switch {
		case r.Code == OK:
			c.answered(r)
			for _, n := range nodes {
				if n.owner != nil && r.Conn == c.session.Conn && r.ID > n.doubted {
					n.unproven = false
				}
			}
		case r.Failed < 0 || r.Failed >= len(nodes): // no entry's fault: the next one will tell
		case r.Code == NoNode:
			c.vanished(now, nodes[r.Failed])
			c.recheck(nodes, r.Failed)
		case r.Code == Refused:
			// Somebody took the right to read the znode away. Without it nothing
			// proves that it is there; the others must not suffer.
			c.unverifiable(now, nodes[r.Failed], r.Err)
			c.recheck(nodes, r.Failed)
		}
	})
}

func paths(nodes []*node) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.path()
	}
	return all
}

// recheck asks again at once about the entries of a multi that failed at one of
// them. Those before it will pass; any of those behind it may fail as well, and
// in halves all that do are found within a few round trips.
func (c *Core) recheck(nodes []*node, failed int) {
	if !c.connected() {
		return
	}
	behind, asked := nodes[failed+1:], false
	for _, part := range [][]*node{nodes[:failed], behind[:len(behind)/2], behind[len(behind)/2:]} {
		part = slices.DeleteFunc(slices.Clone(part), func(n *node) bool { return n.owner == nil || n.state != alive })
		if len(part) > 0 {
			c.check(part)
			asked = true
		}
	}
	if !asked {
		c.check(nil) // for the deadline, which the failed one did not move
	}
}

// unverifiable ends the claim on an entry that can't be asked for any more.
func (c *Core) unverifiable(now time.Duration, n *node, why error) {
	switch cl := n.owner; {
	case cl == nil:
	case cl.phase == held:
		c.lose(now, cl, why)
	default:
		c.fail(now, cl, why)
	}
}
