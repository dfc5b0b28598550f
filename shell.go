package zklock

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A deed is what is done once the mutex is let go: one of its fields is set.
type deed struct {
	gone  chan struct{} // to be closed
	ended *Hold         // whose Done is to be closed
	do    func()
}

func (d *deed) run() {
	switch {
	case d.gone != nil:
		close(d.gone)
	case d.ended != nil:
		d.ended.closeDone.Do(func() { close(d.ended.done) })
	default:
		d.do()
	}
}

// closeLater closes a channel once the mutex, which is held, is let go.
func (c *Client) closeLater(ch chan struct{}) { c.after = append(c.after, deed{gone: ch}) }

// afterwards calls f once the mutex, which is held, is let go.
func (c *Client) afterwards(f func()) { c.after = append(c.after, deed{do: f}) }

// maxKept bounds the room that is kept for what one step sends or tells: steps of
// more are rare, and an idle client should be small.
const maxKept = 16

// step gives the core one input, with the time, and then does what the core
// wants: requests leave in the core's order, whichever goroutine sends them.
func (c *Client) step(input func(core *queue.Core, now time.Duration)) {
	c.mu.Lock()
	at := now()
	input(c.core, at)
	c.apply(c.core, at)
	if len(c.again) > 0 {
		c.lead(c.core, at)
	}
	c.schedule(at)
	var room [4]deed // a step of one lock has no more to do
	after := append(room[:0], c.after...)
	clear(c.after)
	if c.after = c.after[:0]; cap(c.after) > maxKept {
		c.after = nil
	}
	for !c.flushing && len(c.outbox) > 0 {
		c.flushing = true
		batch := c.outbox
		c.outbox = c.sending[:0]
		c.mu.Unlock()
		for i := range batch {
			c.send(&batch[i])
		}
		clear(batch)
		c.mu.Lock()
		if c.sending = nil; cap(batch) <= maxKept {
			c.sending = batch[:0]
		}
		c.flushing = false
	}
	c.mu.Unlock()
	for i := range after {
		after[i].run()
	}
}

// flushSoon has the core send in a moment what it puts off for an acquire to take
// along. The goroutine ends when it has.
func (c *Client) flushSoon() {
	c.mu.Lock()
	pending := c.flushes
	c.flushes = true
	c.mu.Unlock()
	if pending {
		return
	}
	go func() {
		runtime.Gosched() // an acquire right behind the release comes first
		c.step(func(core *queue.Core, now time.Duration) {
			c.flushes = false
			core.Flush(now)
		})
	}()
}

// apply takes the core's output of this moment. The mutex is held.
func (c *Client) apply(core *queue.Core, at time.Duration) {
	c.outbox, c.told = core.TakeInto(c.outbox, c.told)
	for i := range c.told {
		c.signal(c.told[i], at)
	}
	clear(c.told)
	if c.told = c.told[:0]; cap(c.told) > maxKept {
		c.told = nil
	}
	if core.Idle() {
		c.changed.Broadcast()
	}
}

// schedule sets the timer to when the core has something to do. One that is early
// is left alone: it finds nothing to do and is set again, which is cheaper than
// moving it with every step. The mutex is held.
func (c *Client) schedule(now time.Duration) {
	at, ok := c.core.Next()
	if !ok || c.over || c.armed && c.timerAt <= at {
		return
	}
	c.armed, c.timerAt = true, at
	c.timer.Reset(max(0, at-now))
}

// tick is the timer's. It may come in the middle of what one read brought, so it
// must not say that all was delivered: what it asks for is answered by a read.
func (c *Client) tick() {
	c.step(func(core *queue.Core, now time.Duration) {
		c.armed = false
		core.Tick(now)
	})
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
			c.unproven.Store(false)
		}
		core.Session(now, change)
	})
}

// errUnconfirmed is why a release was not confirmed when the client was closed.
var errUnconfirmed = fmt.Errorf("%w: %w", ErrClosed, zk.ErrNotConfirmed)

// signal turns a signal of the core's into what callers see. The mutex is held.
func (c *Client) signal(s queue.Signal, at time.Duration) {
	switch s.Kind {
	case queue.Granted:
		c.granted(s, at)
	case queue.Failed:
		if a := c.attempts[s.ID]; a != nil {
			delete(c.attempts, s.ID)
			a.err = public(s.Err)
			c.closeLater(a.settled)
			c.tellFailed(a, a.err)
			if a.local != nil {
				c.vacated(a.local)
			}
		}
	case queue.Lost:
		if p := c.holds[s.ID]; p != nil {
			delete(c.holds, s.ID)
			c.lose(p, s.Err, at)
			if p.local != nil && p.local.held == p {
				c.vacated(p.local)
			}
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

func (c *Client) granted(s queue.Signal, at time.Duration) {
	a := c.attempts[s.ID]
	if a == nil {
		return
	}
	delete(c.attempts, s.ID)
	p := &possession{
		client: c, lock: a.lock, id: s.ID, token: s.Token, session: s.Session, story: a.story, since: a.since,
		nodes: s.Nodes, tokens: s.Tokens, gone: make(chan struct{}),
	}
	if a.lock.apart() {
		p.token = 0
	}
	if g := a.local; g != nil {
		p.local, g.leader, g.held, g.passed = g, nil, p, 1
	}
	p.story.hold(at)
	a.hold = p.view(a.lock)
	c.holds[s.ID] = p
	c.closeLater(a.settled)
	c.tell(c.opts.OnAcquire, p, nil)
}

func (c *Client) released(s queue.Signal) {
	p := c.holds[s.ID]
	if p == nil {
		return
	}
	delete(c.holds, s.ID)
	tell := c.opts.OnRelease
	switch {
	case errors.Is(s.Err, queue.ErrGone):
		p.released, tell = lost("release", p.lock.path, s.Err), c.opts.OnLost
		c.warn("lock was lost before its release", "lock", p.lock.path, "token", p.token, "error", s.Err)
	case s.Err != nil:
		p.released = &Error{Op: "release", Path: p.lock.path, Err: public(s.Err)}
	}
	c.closeLater(p.gone)
	c.tell(tell, p, p.released)
}

// endangered tells of a hold whose heartbeat is overdue, or was answered again.
func (c *Client) endangered(p *possession, overdue bool) {
	var err error
	if overdue {
		err = queue.ErrDeadline
		c.warn("lock in jeopardy: no answer from a quorum", "lock", p.lock.path, "token", p.token)
	}
	c.tell(c.opts.OnJeopardy, p, err)
}

// warn logs once the mutex is let go.
func (c *Client) warn(msg string, args ...any) {
	c.afterwards(func() { c.log.Warn(msg, args...) })
}
