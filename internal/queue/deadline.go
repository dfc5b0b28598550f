package queue

import (
	"time"
)

// A Deadline computes how long a session is surely alive at the ensemble, from
// requests that the leader is known to have answered.
//
// Plain answers are no proof: a follower that is cut off from its leader goes
// on answering pings and reads for syncLimit ticks, while the leader expires
// the session. A quorum write is answered only by a leader, but the leader
// hears of the session's liveness through its own pings to the follower, every
// half tick. So the rule takes three quorum writes a, b, c on one connection,
// where b was sent at least half a tick (and some) after a was answered, and c
// was sent after b was answered. Once c is answered, the leader has taken note
// of the client's life at or after the moment at which a was sent: a's answer,
// the leader's ping and b's answer share one queue from leader to follower, and
// the follower's report is ahead of c on the way back.
//
// A handshake that succeeded, and a quorum write that was sent on its connection
// and answered, prove the same of the moment when the handshake was sent. The
// handshake alone does not: a leader that was paused or cut off, and has not
// noticed yet that there is another, resumes sessions as before, without asking a
// quorum, while the other counts from its election. A write that is answered was
// taken by a quorum before it elected another.
//
// [Deadline.Heard] lets answers to sync count as a, b and c. They come from the
// leader, but not from a quorum: that is as safe as the conditions of
// zklock.Options.SyncHeartbeat.
//
// All times are readings of one clock that runs through suspend. The zero
// Deadline proves nothing.
type Deadline struct {
	timeout time.Duration // what the ensemble expires after, less clock drift
	gap     time.Duration // between a's answer and b's sending
	alive   time.Duration // the leader noted the session's life then, or later
	proven  bool
	opened  time.Duration // when the connection's handshake was sent
	open    bool          // that is not proven to have been heard by a leader with a quorum
	firsts  []proof       // possible a's, oldest first
}

// proof is an answered request a, and when the first b that qualifies for it
// was answered.
type proof struct {
	sent, received time.Duration
	b              time.Duration // received time of b
	hasB           bool
}

// maxProofs bounds how many a's are remembered. They are thinned to one every
// sixteenth of the gap, so that this many span more than the rule needs.
const maxProofs = 64

// Handshake starts over on a new connection, whose ConnectRequest was sent at
// this time; it is proven by the first quorum write. A resumed session keeps an earlier connection's proof where that
// reaches further; fresh says that the session is a new one. drift is the
// largest difference between the rates of two clocks, as a fraction.
//
// Servers with different limits may grant one session different timeouts. Every
// note of its life makes the leader count anew with the timeout of the server
// that reports it, late reports of a server that was left included, so the
// shortest one counts, for what was proven before as well.
func (d *Deadline) Handshake(sent, timeout time.Duration, drift float64, fresh bool) {
	if fresh {
		d.proven, d.timeout = false, 0
	}
	if t := timeout - time.Duration(float64(timeout)*drift); d.timeout == 0 || t < d.timeout {
		d.timeout = t
		// Half a tick is at most a quarter of the smallest session timeout that a
		// server negotiates; the tick itself is not told to clients. The rest is
		// for clocks that differ and for a leader that is late with its pings; where
		// clocks may differ by more than is left of it, the gap is wider.
		d.gap = max(timeout/4+timeout/32, time.Duration(float64(timeout/4)/(1-drift))+timeout/64)
	}
	d.firsts = d.firsts[:0]
	d.opened, d.open = sent, true
}

// Answered takes note of a quorum write that the leader answered successfully
// on the connection of the last Handshake.
func (d *Deadline) Answered(sent, received time.Duration) {
	if d.open {
		d.raise(d.opened)
		d.open = false
	}
	d.Heard(sent, received)
}

// Heard takes note of a sync that was answered on the connection of the last
// Handshake.
func (d *Deadline) Heard(sent, received time.Duration) {
	newest := -1
	for i := range d.firsts {
		a := &d.firsts[i]
		if a.hasB && sent >= a.b {
			newest = i // this request is a c for a; later a's reach further
		}
		if !a.hasB && sent >= a.received+d.gap {
			a.b, a.hasB = received, true
		}
	}
	if newest >= 0 {
		d.raise(d.firsts[newest].sent)
		d.firsts = append(d.firsts[:0], d.firsts[newest+1:]...)
	}
	d.remember(proof{sent: sent, received: received})
}

// remember keeps a as a first of three, unless the one before is nearly as new.
func (d *Deadline) remember(a proof) {
	if n := len(d.firsts); n > 0 && a.sent < d.firsts[n-1].sent+d.gap/16 {
		return
	}
	if len(d.firsts) == maxProofs {
		d.firsts = append(d.firsts[:0], d.firsts[1:]...)
	}
	d.firsts = append(d.firsts, a)
}

// raise moves the deadline to what a request sent at this time proves.
func (d *Deadline) raise(sent time.Duration) {
	if !d.proven || sent > d.alive {
		d.alive, d.proven = sent, true
	}
}

// Forget drops every proof: the session is over.
func (d *Deadline) Forget() {
	d.proven, d.open = false, false
	d.firsts = d.firsts[:0]
}

// At returns the deadline; ok is false when there is none.
func (d *Deadline) At() (at time.Duration, ok bool) { return d.alive + d.timeout, d.proven }

// Ahead returns by how much the deadline is ahead of now, 0 when it is past or
// there is none.
func (d *Deadline) Ahead(now time.Duration) time.Duration {
	at, ok := d.At()
	if !ok || at <= now {
		return 0
	}
	return at - now
}
