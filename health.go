package zklock

import (
	"time"

	"github.com/zklock/zklock/zk"
)

// A Health says how a client's session does at one moment: for metrics, and for
// the readiness checks of programs that need their locks.
type Health struct {
	// State is that of the session and its connection.
	State zk.State
	// Session is its id, 0 before the first one.
	Session int64
	// Timeout is what the servers gave the session; 0 before the first one.
	Timeout time.Duration
	// Heartbeat is how long ago the servers last answered a heartbeat; one is sent
	// every eighth of Timeout. From a third of it on, holds are in jeopardy. 0 while
	// there is no session.
	Heartbeat time.Duration
	// Remaining is how long holds are safe if the servers are not heard of again,
	// as [Hold.Remaining] says of each; 0 if nothing is proven.
	Remaining time.Duration
	// Sessions is how many the client has had.
	Sessions int
	// Holds is how many locks it holds, and Waiting how many acquires are under way.
	Holds, Waiting int
}

// Health returns how the client does. It asks no server, and is cheap.
func (c *Client) Health() Health {
	h := Health{State: c.zk.State(), Session: c.zk.SessionID(), Timeout: c.zk.SessionTimeout()}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := now()
	if heard, ok := c.core.Heard(); ok {
		h.Heartbeat = max(0, at-heard)
	}
	if deadline, ok := c.core.Deadline(); ok {
		h.Remaining = max(0, deadline-at)
	}
	h.Sessions, h.Waiting = c.sessions, len(c.attempts)
	for _, g := range c.locals {
		h.Waiting += len(g.waiting)
	}
	for _, p := range c.holds {
		if !p.over {
			h.Holds++
		}
	}
	return h
}
