package zk

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// listener is a registered Listener.
type listener struct {
	Listener
	stopped atomic.Bool
}

// drained marks the end of what one read brought.
type drained struct{}

// Listen calls l's functions, beginning with the present state, until stop is
// called. After stop has returned, no further call begins. Listen itself does
// not wait for any of them.
func (c *Client) Listen(l Listener) (stop func()) {
	added := &listener{Listener: l}
	c.mark(added)
	return func() { added.stopped.Store(true) }
}

// deliver tells what there is to tell. At most one goroutine does so at a time,
// mostly the reader; whoever finds another at it leaves its part to that one.
// So users see one order, and no lock is held while they are told.
func (c *Client) deliver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.delivering {
		// A reader that went on while another tells slowly would let the server
		// decide how much memory that takes.
		if c.core.Untold() <= maxUntold {
			return
		}
		c.changed.Wait()
	}
	c.delivering = true
	for c.core.HasNotices() {
		batch := c.core.TakeNotices(c.spare)
		c.spare = nil
		if len(batch) > maxUntold {
			c.changed.Broadcast() // the reader may wait for this
		}
		c.mu.Unlock()
		for i := range batch {
			c.tell(&batch[i])
		}
		clear(batch)
		c.mu.Lock()
		if c.room.keep(cap(batch), len(batch), smallSpare, maxSpare) {
			c.spare = batch[:0]
		}
	}
	c.delivering = false
	c.changed.Broadcast()
}

// maxUntold is how many notices may wait for a goroutine that is telling before
// the reader waits for it too.
const maxUntold = 4096

// How much room for notices is kept between deliveries: always, and at most.
const (
	smallSpare = 16
	maxSpare   = 256
)

// tell tells one thing. Only the deliverer runs it.
func (c *Client) tell(n *session.Notice) {
	switch n.Kind {
	case session.NoticeReply:
		n.Call.Done()
	case session.NoticeState:
		c.tellState(&n.State)
	case session.NoticeEvent:
		c.tellEvent(&n.Event)
	case session.NoticeMark:
		switch m := n.Mark.(type) {
		case *listener:
			c.listeners = append(c.listeners, m)
			if m.State != nil && !m.stopped.Load() {
				m.State(c.told)
			}
		case func():
			m()
		case drained:
			for l := range c.live() {
				if l.Drained != nil {
					l.Drained()
				}
			}
		}
	}
}

// live yields the listeners that were not stopped, and forgets the others.
func (c *Client) live() func(yield func(*listener) bool) {
	return func(yield func(*listener) bool) {
		stopped := false
		for _, l := range c.listeners {
			if l.stopped.Load() {
				stopped = true
			} else if !yield(l) {
				break
			}
		}
		if stopped {
			c.listeners = slices.DeleteFunc(c.listeners, func(l *listener) bool { return l.stopped.Load() })
		}
	}
}

// tellState tells of a change of state. Requests made from here on belong to
// the session that it is about: what a user asks for in the belief that one
// session lives must not run in the next.
func (c *Client) tellState(s *session.StateChange) {
	c.told = convertState(*s)
	c.mu.Lock()
	c.epoch = s.Epoch
	c.shown = c.told
	c.mu.Unlock()
	c.logState(&c.told)
	if s.State == session.Expired || s.State == session.Closed || s.State == session.AuthFailed {
		c.watchers.closeAll()
	}
	for l := range c.live() {
		if l.State != nil {
			l.State(c.told)
		}
	}
}

// logState writes a change of state to the log.
func (c *Client) logState(s *StateChange) {
	if c.opts.Logger == nil {
		return
	}
	level := slog.LevelInfo
	if s.State == Expired || s.State == AuthFailed {
		level = slog.LevelWarn
	}
	args := []slog.Attr{slog.String("state", s.State.String()), slog.Int64("session", s.SessionID)}
	if s.Err != nil {
		args = append(args, slog.Any("err", s.Err))
	}
	c.opts.Logger.LogAttrs(context.Background(), level, "zk: session state", args...)
	c.logTimeout(s)
}

// logTimeout warns, once a session, when the servers gave another timeout than was
// asked for: after a crash, locks are free later or sooner than somebody thinks.
func (c *Client) logTimeout(s *StateChange) {
	asked := c.opts.SessionTimeout.Truncate(time.Millisecond)
	if s.Timeout == 0 || s.Timeout == asked || s.SessionID == c.warned {
		return
	}
	c.warned = s.SessionID
	c.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn, "zk: the servers gave another session timeout than was asked for",
		slog.Duration("asked", asked), slog.Duration("given", s.Timeout), slog.Int64("session", s.SessionID))
}

// tellEvent tells of a watch event: first to those who wait for it alone.
func (c *Client) tellEvent(e *session.Event) {
	ev := Event{Type: EventType(e.Type), Path: c.root.strip(e.Path), Zxid: e.Zxid, Received: e.Received, Conn: e.Conn}
	c.watchers.fire(wire.EventType(ev.Type), e.Path, ev)
	for l := range c.live() {
		if l.Event != nil {
			l.Event(ev)
		}
	}
}
