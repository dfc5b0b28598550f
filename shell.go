package zklock

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// step gives the core one input, with the time, and then does what the core
// wants: requests leave in the core's order, whichever goroutine sends them.
func (c *Client) step(input func(core *queue.Core, now time.Duration)) {
	c.mu.Lock()
	input(c.core, now())
	c.apply(c.core)
	c.schedule()
	after := c.after
	c.after = nil
	for !c.flushing && len(c.outbox) > 0 {
		c.flushing = true
		batch := c.outbox
		c.outbox = nil
		c.mu.Unlock()
		for _, r := range batch {
			c.send(r)
		}
		c.mu.Lock()
		c.flushing = false
	}
	c.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// apply takes the core's output. The mutex is held.
func (c *Client) apply(core *queue.Core) {
	requests, signals := core.Take()
	c.outbox = append(c.outbox, requests...)
	for _, s := range signals {
		c.signal(s)
	}
	if core.Idle() {
		c.changed.Broadcast()
	}
}

// schedule sets the timer to when the core has something to do. The mutex is held.
func (c *Client) schedule() {
	if at, ok := c.core.Next(); ok && !c.over {
		c.timer.Reset(max(0, at-now()))
	} else {
		c.timer.Stop()
	}
}

// tick is the timer's. It may come in the middle of what one read brought, so it
// must not say that all was delivered: what it asks for is answered by a read.
func (c *Client) tick() {
	c.step(func(core *queue.Core, now time.Duration) { core.Tick(now) })
}

func (c *Client) onDrained() {
	c.step(func(core *queue.Core, now time.Duration) { core.Drained(now) })
}

func (c *Client) onEvent(e zk.Event) {
	var kind queue.EventKind
	switch e.Type {
	case zk.EventNodeDeleted:
		kind = queue.Deleted
	case zk.EventNodeDataChanged, zk.EventNodeCreated:
		kind = queue.Changed
	case zk.EventNodeChildrenChanged:
		kind = queue.Children
	default:
		return
	}
	c.step(func(core *queue.Core, now time.Duration) { core.Event(now, kind, e.Path) })
}

func (c *Client) onState(s zk.StateChange) {
	change := queue.SessionChange{Session: s.SessionID, Timeout: s.Timeout, Sent: s.Sent, Conn: s.Conn}
	switch s.State {
	case zk.Connected:
		change.State = queue.Connected
		if err := c.opts.checkTimeout(s.Timeout); err != nil {
			c.log.Warn("heartbeats of this session are quorum writes", "error", err)
		}
	case zk.Disconnected, zk.ConnectedReadOnly:
		change.State = queue.Disconnected
	case zk.Expired:
		change.State = queue.Expired
	case zk.AuthFailed:
		change.State, change.Err, change.Left = queue.Closed, zk.ErrAuthFailed, zk.ErrAuthFailed
	case zk.Closed:
		change.State, change.Err = queue.Closed, queue.ErrClosed
		if s.Err != nil {
			change.Left = errUnconfirmed
		}
	default:
		return
	}
	c.step(func(core *queue.Core, now time.Duration) {
		if change.State == queue.Connected && change.Session != c.session {
			c.session = change.Session
			c.sessions++
		}
		core.Session(now, change)
	})
}

// errUnconfirmed is why a release was not confirmed when the client was closed.
var errUnconfirmed = fmt.Errorf("%w: %w", ErrClosed, zk.ErrNotConfirmed)

// signal turns a signal of the core's into what callers see. The mutex is held.
func (c *Client) signal(s queue.Signal) {
	switch s.Kind {
	case queue.Granted:
		c.granted(s)
	case queue.Failed:
		if a := c.attempts[s.ID]; a != nil {
			delete(c.attempts, s.ID)
			a.err = public(s.Err)
			c.hook(c.opts.OnFail, a.event(a.err))
			c.after = append(c.after, func() { close(a.settled) })
		}
	case queue.Lost:
		if p := c.holds[s.ID]; p != nil {
			delete(c.holds, s.ID)
			c.lose(p, s.Err)
		}
	case queue.Released:
		c.released(s)
	case queue.Waiting:
		if a := c.attempts[s.ID]; a != nil {
			c.waits(a, s)
		}
	case queue.Jeopardy, queue.Recovered:
		if p := c.holds[s.ID]; p != nil {
			c.endangered(p, s.Kind == queue.Jeopardy)
		}
	case queue.Verified, queue.Downgraded:
		c.answered(s)
	case queue.Revoked:
		if p := c.holds[s.ID]; p != nil {
			c.revoke(p)
		}
	case queue.NearLimit:
		if a := c.attempts[s.ID]; a != nil {
			c.warn("sequence numbers near their limit; delete the lock's znode while nobody uses it", "lock", a.lock.path, "sequence", s.Token)
		}
	}
}

func (c *Client) granted(s queue.Signal) {
	a := c.attempts[s.ID]
	if a == nil {
		return
	}
	delete(c.attempts, s.ID)
	p := &possession{
		client: c, lock: a.lock, id: s.ID, token: s.Token, session: s.Session, owner: a.owner,
		ctx: a.ctx, begun: a.begun, granted: now(),
		nodes: s.Nodes, tokens: s.Tokens, gone: make(chan struct{}),
	}
	if a.lock.apart() {
		p.token = 0
	}
	a.hold = p.view(a.lock)
	c.holds[s.ID] = p
	c.after = append(c.after, func() { close(a.settled) })
	c.hook(c.opts.OnAcquire, p.event(nil))
}

func (c *Client) released(s queue.Signal) {
	p := c.holds[s.ID]
	if p == nil {
		return
	}
	delete(c.holds, s.ID)
	if s.Err != nil {
		p.released = &Error{Op: "release", Path: p.lock.path, Err: public(s.Err)}
	}
	c.after = append(c.after, func() { close(p.gone) })
	c.hook(c.opts.OnRelease, p.event(p.released))
}

// endangered tells of a hold whose heartbeat is overdue, or was answered again.
func (c *Client) endangered(p *possession, overdue bool) {
	var err error
	if overdue {
		err = queue.ErrDeadline
		c.warn("lock in jeopardy: no answer from a quorum", "lock", p.lock.path, "token", p.token)
	}
	c.hook(c.opts.OnJeopardy, p.event(err))
}

// warn logs once the mutex is let go.
func (c *Client) warn(msg string, args ...any) {
	c.after = append(c.after, func() { c.log.Warn(msg, args...) })
}
