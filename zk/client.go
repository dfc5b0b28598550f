package zk

import (
	"context"
	"time"
)

// Client is one ZooKeeper session after another. It is safe for concurrent use.
type Client struct{}

// Dial connects to one of the servers and returns when a session is there.
// ctx bounds Dial only.
func Dial(ctx context.Context, servers string, opts *Options) (*Client, error) {
	return nil, &Error{Op: "dial", Path: servers, Err: ErrUnimplemented, applied: AppliedNo}
}

// Close ends the session and waits, for a bounded time, until the server has
// confirmed it.
func (c *Client) Close() error { return nil }

// Go queues op and returns at once. done, if not nil, is called with the
// result, in the order of the wire and with no lock held; it must not block
// and may call Go. Requests leave in the order of the calls.
func (c *Client) Go(op Op, done func(Result)) {}

// Listen calls l's functions until stop is called.
func (c *Client) Listen(l Listener) (stop func()) { return func() {} }

// SessionID is the id of the present session, 0 if there is none.
func (c *Client) SessionID() int64 { return 0 }

// SessionTimeout is the negotiated timeout of the present session.
func (c *Client) SessionTimeout() time.Duration { return 0 }

// State is the present state.
func (c *Client) State() State { return Disconnected }
