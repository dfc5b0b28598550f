package session

import (
	"errors"
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
			c.dropConnection(fmt.Errorf("%w: %v within %v", ErrTimeout, c.awaited(), c.dialTimeout().Round(time.Millisecond)), now)
		}
	case connected:
		c.tickConnected(now)
	}
}

// awaited returns an error that says which step of the present attempt the server has not done
// yet. It returns nil if there is no attempt.
func (c *Core) awaited() error {
	switch {
	case c.phase == dialing:
		return errors.New("the server did not accept the connection")
	case c.phase == handshaking:
		return errors.New("the server did not answer the connect request")
	case c.phase == authenticating:
		return errors.New("the server did not authenticate by SASL")
	case c.phase == connected && !c.Ready():
		return errors.New("the server did not answer the credentials")
	}
	return nil
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
