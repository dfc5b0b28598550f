package session

import (
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// leader is what the core knows about the leader of the ensemble. During a rolling upgrade, a
// server of 3.5 or later may have a leader of 3.4. When it passes a write to the leader that
// the leader does not know, it closes the connection without an answer.
//
// The end of a connection proves little. After a few, the core asks; see askLeader.
type leader struct {
	// endings is how many connections in a row the server closed without an answer to a
	// write that 3.4 does not know.
	endings int
	// old: the leader counts as one of 3.4, until the time oldUntil or the end of the session.
	old      bool
	oldUntil time.Duration
}

const (
	// maxEndings is after how many endings the core asks.
	maxEndings = 2
	// oldLeaderTime is how long the answer is valid.
	oldLeaderTime = time.Minute
)

// newWrite reports whether the operation is a write that 3.4 does not know.
func (o *Op) newWrite() bool {
	return o.Code != wire.OpCheckWatches && o.Code != wire.OpRemoveWatches && o.since() == release35
}

// connectionEnded notes why a connection ended that was in use. A server that closes it before
// it has read all requests resets it.
func (c *Core) connectionEnded(err error, now time.Duration) {
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if c.asksLeader() {
		c.leader = leader{old: true, oldUntil: now + oldLeaderTime}
		return
	}
	for call := c.pending.first; call != nil; call = call.next {
		if call.Op.newWrite() {
			c.leader.endings++
			return
		}
	}
}

// askLeader finds out whether the leader knows containers, if the last connections suggest that
// it does not. The znode exists on all servers, so nothing is created. No other call is sent
// until the answer arrives: if the server closes this connection too, nothing else is the
// reason.
func (c *Core) askLeader(now time.Duration) {
	if c.leader.endings < maxEndings || c.release < release35 || c.closing {
		return
	}
	c.leaderCall = Call{Op: Op{Code: wire.OpCreateContainer, Path: "/zookeeper", Mode: wire.ModeContainer}}
	c.send(&c.leaderCall, now)
}

// asksLeader reports whether the answer to askLeader is due.
func (c *Core) asksLeader() bool { return c.leaderCall.state == sent }

// expire forgets that the leader was old: it may have been upgraded, or replaced.
func (l *leader) expire(now time.Duration) {
	if l.old && now >= l.oldUntil {
		*l = leader{}
	}
}
