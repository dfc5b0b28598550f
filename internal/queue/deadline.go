package queue

import (
	"slices"
	"time"
)

// A Deadline computes how long a session is surely alive at the ensemble, from
// requests that the leader is known to have answered.
//
// Plain answers prove nothing: a follower that is cut off from its leader goes on
// answering pings and reads for syncLimit ticks, while the leader expires the
// session. The leader answers syncs and writes, but it learns that the session
// lives only from its own pings to the follower, one every half tick. So a proof
// takes three requests a, b, c on one connection:
//
//   - a is a sync. Another request, which the follower answers, goes out right after
//     it, because ZooKeeper's LearnerSessionTracker can lose one touch of a session.
//   - b is a sync or a write. The client sends it at least half a tick and a slack
//     after the answers to both.
//   - c is a write. The client sends it at least a slack after the answer to b.
//
// Once c is answered, the leader has noted the client's life at or after the moment
// at which a was sent. The answer to a, the leader's ping, and the answer to b share
// one queue from the leader to the follower, and one thread of the follower handles
// them in order, so the follower reports a to the leader before it forwards c. The
// first slack is for a leader whose ping is late. A leader that is paused for longer
// pings when it continues, which the second slack waits for. c is a write because a
// quorum takes it: a leader that was deposed and has not noticed answers syncs.
//
// A handshake that succeeded, and a write that was sent on its connection and
// answered, prove the same of the moment at which the handshake was sent. The
// handshake alone does not, because a deposed leader also resumes sessions.
//
// [Deadline.Heard] accepts a sync as c. That is as safe as the conditions of
// zklock.Options.SyncHeartbeat.
//
// All times are readings of one clock that runs through suspend. The zero
// Deadline proves nothing. See spec/deadline.pml and spec/deposed.pml.
type Deadline struct {
	timeout  time.Duration // the session timeout, less clock drift
	longest  time.Duration // the gap if nothing is known of the tick
	late     time.Duration // by how much the leader's pings may be late
	slack    time.Duration // between b's answer and the sending of c
	drift    float64
	tick     time.Duration // the servers' tick, if the caller stated it; 0 if not
	halfTick time.Duration // the largest bound that any connection told; 0 for none
	told     bool          // the connection of the last Handshake told a bound
	alive    time.Duration // the leader noted the session's life then, or later
	proven   bool
	opened   time.Duration // when the connection's handshake was sent
	open     bool          // the handshake is not proven yet
	firsts   []proof       // possible a's, oldest first
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
// this time. The first answered write proves it. A resumed session keeps an earlier
// connection's proof if that reaches further; fresh says that the session is a new
// one. drift is the largest difference between the rates of two clocks, as a
// fraction.
//
// Servers with different limits may grant one session different timeouts. Every
// note of its life makes the leader count anew with the timeout of the server that
// reports it, which can be a server that the client has left. So the shortest
// timeout counts, also for earlier proofs.
func (d *Deadline) Handshake(sent, timeout time.Duration, drift float64, fresh bool) {
	if fresh {
		d.proven, d.timeout = false, 0
	}
	if t := timeout - time.Duration(float64(timeout)*drift); d.timeout == 0 || t < d.timeout {
		d.timeout, d.drift = t, drift
		// Half a tick is at most a quarter of the smallest session timeout that a
		// server negotiates. The rest is for clocks that differ, and for a leader that
		// is late with its pings.
		d.longest = max(timeout/4+timeout/32, time.Duration(float64(timeout/4)/(1-drift))+timeout/64)
		d.late, d.slack = timeout/32, timeout/64
	}
	d.firsts = d.firsts[:0]
	d.opened, d.open, d.told = sent, true, false
}

// HalfTick sets an upper bound of half the tick of the servers behind the
// connection of the last Handshake. The largest bound of all connections counts,
// and none before the present connection has told one.
func (d *Deadline) HalfTick(bound time.Duration) {
	d.halfTick, d.told = max(d.halfTick, bound), true
}

// SetTick sets the servers' tick. Unlike a bound, it also counts where the session is
// shorter than two ticks.
func (d *Deadline) SetTick(tick time.Duration) { d.tick = tick }

// Gap returns how long after the answers to a the client sends b.
func (d *Deadline) Gap() time.Duration {
	switch {
	case d.tick > 0:
		return d.gap(d.tick / 2)
	case d.told:
		return min(d.longest, d.gap(d.halfTick))
	default:
		return d.longest
	}
}

// gap returns the gap for half a tick.
func (d *Deadline) gap(halfTick time.Duration) time.Duration {
	return time.Duration(float64(halfTick)/(1-d.drift)) + d.late
}

// Wait returns for how long a b that is due at this time should wait, most at the
// longest, until it qualifies for an a whose answers were late; 0 if there is none.
func (d *Deadline) Wait(due, most time.Duration) time.Duration {
	for _, a := range slices.Backward(d.firsts) {
		if late := a.received + d.Gap() - due; !a.hasB && late > 0 && late <= most {
			return late
		}
	}
	return 0
}

// Begin records an a: a sync that was answered successfully on the connection of
// the last Handshake, with a request after it that was answered, too. received is
// when the later of the two answers arrived.
func (d *Deadline) Begin(sent, received time.Duration) {
	if n := len(d.firsts); n > 0 && sent < d.firsts[n-1].sent+d.Gap()/16 {
		return // the one before is nearly as new
	}
	if len(d.firsts) == maxProofs {
		d.firsts = append(d.firsts[:0], d.firsts[1:]...)
	}
	d.firsts = append(d.firsts, proof{sent: sent, received: received})
}

// Continue records a b: a sync or write that was answered successfully on the
// connection of the last Handshake.
func (d *Deadline) Continue(sent, received time.Duration) {
	gap := d.Gap()
	for i := range d.firsts {
		if a := &d.firsts[i]; !a.hasB && sent >= a.received+gap {
			a.b, a.hasB = received, true
		}
	}
}

// Answered records a write that was answered successfully on the connection of the
// last Handshake: a c, and a b.
func (d *Deadline) Answered(sent, received time.Duration) {
	if d.open {
		d.raise(d.opened)
		d.open = false
	}
	d.Heard(sent, received)
}

// Heard records a sync that was answered successfully as a c, and as a b.
func (d *Deadline) Heard(sent, received time.Duration) {
	newest := -1
	for i := range d.firsts {
		if a := &d.firsts[i]; a.hasB && sent >= a.b+d.slack {
			newest = i // later a's reach further
		}
	}
	if newest >= 0 {
		d.raise(d.firsts[newest].sent)
		d.firsts = append(d.firsts[:0], d.firsts[newest+1:]...)
	}
	d.Continue(sent, received)
}

// raise moves the deadline to what a request sent at this time proves.
func (d *Deadline) raise(sent time.Duration) {
	if !d.proven || sent > d.alive {
		d.alive, d.proven = sent, true
	}
}

// Forget drops every proof: the session is over.
func (d *Deadline) Forget() {
	d.proven, d.open, d.told = false, false, false
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
