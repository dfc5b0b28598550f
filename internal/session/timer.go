package session

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// NextTimer is when Tick or WantDial is to be called next, if nothing happens
// before.
func (c *Core) NextTimer() (time.Duration, bool) {
	switch c.phase {
	case waiting:
		return c.dialAt, true
	case dialing, greeting, authenticating:
		return c.deadline, true
	case connected:
		t := min(c.pingAt(), c.silentAt())
		if c.closing {
			t = min(t, c.closeAt)
		}
		if at, ok := c.probe.next(c); ok {
			t = min(t, at)
		}
		return t, true
	}
	return 0, false
}

// pingAt is when a ping is due: after a third of the session timeout without
// anything sent.
func (c *Core) pingAt() time.Duration { return c.lastSend + c.negotiated/3 }

// silentAt is when a connection counts as dead: after two thirds of the session
// timeout without anything received. A third is left to find another server.
func (c *Core) silentAt() time.Duration { return c.lastRecv + c.negotiated*2/3 }

// Tick does what the time asks for.
func (c *Core) Tick(now time.Duration) {
	switch c.phase {
	case dialing, greeting, authenticating:
		if now >= c.deadline {
			what := "connect"
			switch c.phase {
			case greeting:
				what = "answer the connect request"
			case authenticating:
				what = "authenticate by SASL"
			}
			c.lose(fmt.Errorf("%w: the server did not %s within %v", ErrTimeout, what, c.budget()), now)
		}
	case connected:
		c.tickConnected(now)
	}
}

// tickConnected closes, hangs up or pings.
func (c *Core) tickConnected(now time.Duration) {
	switch {
	case c.closing && now >= c.closeAt:
		c.finish(Closed, fmt.Errorf("%w to the request to close the session", ErrTimeout))
	case now >= c.silentAt():
		c.lose(fmt.Errorf("%w: silent for %v", ErrTimeout, now-c.lastRecv), now)
	case now >= c.pingAt():
		c.out = wire.AppendRequest(c.out, wire.XidPing, wire.OpPing, nil)
		// A ping that the driver can't write, because the network takes nothing,
		// waits in out; before the next is due the silence ends the connection.
		c.pings++
		c.lastSend = now
	}
}
