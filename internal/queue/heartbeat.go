package queue

import (
	"slices"
	"time"
)

// A heartbeat sends what proves that the session lives (see Deadline): in each
// eighth of the session timeout a sync with a ping after it (a), a sync (b), and a
// write (c) that asks a quorum about all of the session's entries. The write also
// tells of an entry that another client deleted. There is one heartbeat a session,
// however many locks it holds. If the client neither holds nor waits, the write is
// omitted: the create of the next acquire takes its place, so that the acquire finds
// a proof that it completes, and needs one round trip.
//
// a and b go out as late as c permits, so that c proves a moment that is as young
// as possible. If the answers to a were late, so are b and c, within limits: a b that
// goes out too early would leave a without a proof for another eighth.
//
// With [Config.Sync] the third request is a sync, too, which the leader answers
// without its log and the other servers. A sync tells of no entry, so the client
// watches each: what a server tells of watches goes out before a sync's answer, and
// the leader has told the server of all that it had decided. A quorum is asked where
// there is something to prove: of a new connection, and for a grant.
type heartbeat struct {
	sentAt     time.Duration // when the last c, or what an idle client sends in its place, was due; 0 before the first
	begunAt    time.Duration // when this connection began
	answeredAt time.Duration // when the servers last answered
	roundTrip  time.Duration // how long syncs take, lately
	first      bool          // a of this eighth was sent
	second     bool          // b of this eighth was sent
	secondAt   time.Duration // when the last b was answered, or unanswered
	late       time.Duration // by how much this eighth's b goes out late
	underWay   int           // how many c's are unanswered
	syncs      int           // how many a's and b's are unanswered
	jeopardy   bool
	hurry      bool // an acquire is ready but for the proof
}

// maxUnderWay bounds the writes without an answer on a stalled connection, and
// maxSyncs the syncs.
const (
	maxUnderWay = 4
	maxSyncs    = 2 * maxUnderWay
)

// unanswered is later than any moment.
const unanswered = time.Duration(1 << 62)

// checksPerMulti bounds one heartbeat's frame: paths are some 600 bytes at the
// most, a server's limit on frames is 1 MiB. With a long chroot, check sends smaller frames.
const checksPerMulti = 512

// restart is for a new connection. That a session was resumed on it shows no
// quorum, unlike that one was made.
func (b *heartbeat) restart(now time.Duration) {
	answered := b.answeredAt
	*b = heartbeat{begunAt: now, answeredAt: answered, roundTrip: b.roundTrip, jeopardy: b.jeopardy, hurry: b.hurry}
	if b.answeredAt == 0 {
		b.answeredAt = now
	}
}

// begin starts the next eighth of the timeout.
func (b *heartbeat) begin(now time.Duration) {
	b.sentAt, b.first, b.second, b.late = now, false, false, 0
}

// plan returns when a, b, and c of this eighth of the timeout are due; 0 for never.
func (b *heartbeat) plan(timeout time.Duration, d *Deadline) (first, second, third time.Duration) {
	period := timeout / 8
	start := max(b.sentAt, b.begunAt)
	trip := min(b.roundTrip, timeout/32) + timeout/512
	lead := timeout/64 + trip // from b to c
	if !b.second {
		second = start + period - lead
		b.late = d.Wait(second, timeout/32)
		second += b.late
	}
	if !b.first {
		// The a that this b continues went out in this eighth of the timeout, or some earlier.
		first = start + period - (lead+d.Gap()+trip)%period
	}
	// c waits for the answer to b, but not for long.
	third = start + period
	if b.second {
		third = max(third, min(b.secondAt+timeout/64, third+b.late+timeout/64))
	} else {
		third += b.late
	}
	if b.syncs >= maxSyncs {
		first, second = 0, 0
	}
	switch {
	case b.underWay >= maxUnderWay:
		third = 0
	case b.hurry:
		third = b.sentAt + timeout/32
		first, second = 0, 0 // each c has an a before it
	}
	return first, second, third
}

// nextBeat returns when the next request of the heartbeat is due, 0 for never.
func (c *Core) nextBeat() time.Duration {
	var at time.Duration
	first, second, third := c.beat.plan(c.session.Timeout, &c.deadline)
	for _, t := range []time.Duration{first, second, third} {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	return at
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

// SessionTimeout returns the shortest timeout that the servers granted to the session, 0
// without a session.
func (c *Core) SessionTimeout() time.Duration { return c.session.Timeout }

// HalfTick takes an upper bound of half the tick of the servers behind connection
// conn. Without one, the proof of the deadline takes longer.
func (c *Core) HalfTick(now time.Duration, conn uint64, bound time.Duration) {
	c.advance(now)
	if c.connected() && c.session.Conn == conn {
		c.deadline.HalfTick(bound)
	}
}

// heartbeat sends what is due.
func (c *Core) heartbeat(now time.Duration) {
	if !c.connected() {
		return
	}
	due := func(at time.Duration) bool { return at != 0 && now >= at }
	first, second, third := c.beat.plan(c.session.Timeout, &c.deadline)
	if due(first) {
		c.beat.first = true
		c.sendFirst()
	}
	if due(second) {
		c.beat.second = true
		c.sendSecond()
	}
	if !due(third) {
		return
	}
	switch settled := c.settledAt >= c.unsettledUntil; {
	case !settled && len(c.unanswered) > 0:
		// If the servers moved the session to another connection and applied an old create
		// there, they refuse this write and the connection ends, unlike after a sync. The
		// core then searches again. They check the session before the path, so an error
		// that concerns the path shows that the session has not moved.
		c.send(Request{Kind: Check, Paths: []string{"/"}}, func(_ time.Duration, r Reply) {
			if r.Code == OK || r.Failed == 0 && (r.Code == NoNode || r.Code == Refused) {
				c.settledAt = max(c.settledAt, r.Sent)
			}
		})
	case settled && now >= c.beat.begunAt+c.session.Timeout:
		c.boundUnanswered(maxUnanswered) // the servers accept no create of an earlier connection any more
	}
	switch {
	case c.beat.hurry:
		c.sendFirst()
		c.beatNow(now)
	case len(c.acquires) == 0:
		c.beat.begin(now)
	case c.cheap():
		c.beat.begin(now)
		c.sync()
	default:
		c.beatNow(now)
	}
}

// cheap reports whether a sync does for the next heartbeat's c.
func (c *Core) cheap() bool { return c.syncs() && !c.deadline.open }

// syncs reports whether heartbeats have no writes. In a session of less than four
// ticks a leader that was deposed would answer syncs for too long.
func (c *Core) syncs() bool { return c.cfg.Sync && c.session.Timeout >= 4*c.cfg.Tick }

// sendFirst sends an a: a sync, and a ping after it.
func (c *Core) sendFirst() {
	var sent, received time.Duration
	answers := 0
	answered := func(r Reply) {
		received = max(received, r.Received)
		if answers++; answers == 2 {
			c.deadline.Begin(sent, received)
		}
	}
	c.sendSync(func(r Reply) {
		sent = r.Sent
		c.deadline.Continue(r.Sent, r.Received)
		answered(r)
	})
	conn := c.session.Conn
	c.send(Request{Kind: Ping, Path: "/"}, func(_ time.Duration, r Reply) {
		// An error is an answer, too: the server has seen the request.
		if conn == c.session.Conn && r.Conn == conn && c.connected() && (r.Code == OK || r.Code == NoNode || r.Code == Refused) {
			answered(r)
		}
	})
}

// sendSecond sends a b.
func (c *Core) sendSecond() {
	c.beat.secondAt = unanswered
	c.sendSync(func(r Reply) {
		c.deadline.Continue(r.Sent, r.Received)
		c.beat.secondAt = r.Received
	})
}

// sendSync sends a sync, and calls answered with a successful answer that came on
// the same connection.
func (c *Core) sendSync(answered func(r Reply)) {
	conn := c.session.Conn
	c.beat.syncs++
	c.send(Request{Kind: Sync, Path: "/"}, func(_ time.Duration, r Reply) {
		if c.session.Conn != conn {
			return
		}
		c.beat.syncs--
		if r.Code != OK || r.Conn != conn || !c.connected() {
			return
		}
		trip := r.Received - r.Sent
		c.beat.roundTrip = max(trip, c.beat.roundTrip-c.beat.roundTrip/8)
		answered(r)
		if len(c.acquires) == 0 {
			c.alive(r.Received)
		}
	})
}

// sync asks the leader, and watches every entry.
func (c *Core) sync() {
	for _, acq := range c.acquires {
		if acq.swap == nil {
			c.watchOwnNodes(acq)
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
	c.beat.begin(now)
	var nodes []*node
	for _, acq := range c.acquires {
		if acq.swap != nil {
			continue // which of its entries is there is not known
		}
		for _, p := range acq.positions {
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
		case r.TooLarge && len(nodes) > 1: // because the chroot is long
			c.recheck(nodes[:len(nodes)/2], nodes[len(nodes)/2:])
		case r.Code == OK:
			c.answered(r)
			for _, n := range nodes {
				if n.owner != nil && r.Conn == c.session.Conn && r.ID > n.doubted {
					n.doubted = 0
				}
			}
		case r.Failed < 0 || r.Failed >= len(nodes): // no entry's fault: the next one will tell
		case r.Code == NoNode:
			c.vanished(now, nodes[r.Failed])
			c.recheckOthers(nodes, r.Failed)
		case r.Code == Refused:
			// The client has lost the permission to read the znode. Nothing can prove now
			// that it exists. The other entries must not be affected.
			c.unverifiable(now, nodes[r.Failed], r.Err)
			c.recheckOthers(nodes, r.Failed)
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

// recheckOthers repeats the check for the other entries of a multi that failed at one.
// The entries before it will pass. Any of the entries after it may also fail; checks of
// halves find all of those within a few round trips.
func (c *Core) recheckOthers(nodes []*node, failed int) {
	behind := nodes[failed+1:]
	c.recheck(nodes[:failed], behind[:len(behind)/2], behind[len(behind)/2:])
}

// recheck repeats the check of a multi at once, in parts.
func (c *Core) recheck(parts ...[]*node) {
	if !c.connected() {
		return
	}
	asked := false
	for _, part := range parts {
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

// unverifiable ends the acquire of an entry that can no longer be checked.
func (c *Core) unverifiable(now time.Duration, n *node, why error) {
	switch acq := n.owner; {
	case acq == nil:
	case acq.phase == held:
		c.lose(now, acq, why)
	default:
		c.fail(now, acq, why)
	}
}
