package session

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// NextTimer returns when to call Tick or WantDial next, if nothing else happens
// first.
func (c *Core) NextTimer() (time.Duration, bool) {
	switch c.phase {
	case waiting:
		return c.dialAt, true
	case dialing, handshaking, authenticating:
		return c.deadline, true
	case connected:
		t := min(c.pingAt(), c.silentAt())
		if c.closing {
			t = min(t, c.closeAt)
		}
		if at, ok := c.probe.next(c); ok {
			t = min(t, at)
		}
		if c.leader.old {
			t = min(t, c.leader.oldUntil)
		}
		return t, true
	}
	return 0, false
}

// pingAt returns when a ping is due: after a third of the session timeout in which
// nothing was sent.
func (c *Core) pingAt() time.Duration { return c.lastSend + c.negotiated/3 }

// silentAt returns when the connection counts as dead: after two thirds of the
// session timeout in which nothing was received. The last third is left to find
// another server.
func (c *Core) silentAt() time.Duration { return c.lastRecv + c.negotiated*2/3 }

// Tick performs what is due at now.
func (c *Core) Tick(now time.Duration) {
	switch c.phase {
	case dialing, handshaking, authenticating:
		if now >= c.deadline {
			what := "connect"
			switch c.phase {
			case handshaking:
				what = "answer the connect request"
			case authenticating:
				what = "authenticate by SASL"
			}
			c.dropConnection(fmt.Errorf("%w: the server did not %s within %v", ErrTimeout, what, c.dialTimeout()), now)
		}
	case connected:
		c.tickConnected(now)
	}
}

// tickConnected finishes closing, drops a silent connection, or sends a ping.
func (c *Core) tickConnected(now time.Duration) {
	c.leader.expire(now)
	switch {
	case c.closing && now >= c.closeAt:
		c.finish(Closed, fmt.Errorf("%w to the request to close the session", ErrTimeout))
	case now >= c.silentAt():
		c.dropConnection(fmt.Errorf("%w: silent for %v", ErrTimeout, now-c.lastRecv), now)
	case now >= c.pingAt():
		c.out = wire.AppendRequest(c.out, wire.XidPing, wire.OpPing, nil)
		// A ping that the driver cannot write, because the network accepts nothing,
		// stays in out. Before the next ping is due, the silence ends the connection.
		c.pings++
		c.lastSend = now
	}
}
