package zk

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
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

// drained marks the end of the frames of one read.
type drained struct{}

// Listen registers l. The client calls its functions, beginning with the present
// state, until stop is called. Neither Listen nor stop waits for a call: the call that
// has begun, or is about to begin, when stop is called may run after stop has returned.
// No later call begins. If one of the functions calls stop, none is called again.
func (c *Client) Listen(l Listener) (stop func()) {
	added := &listener{Listener: l}
	c.mark(added)
	return func() { added.stopped.Store(true) }
}

// deliver delivers the pending notices. At most one goroutine does so at a time,
// usually the reader. A goroutine that finds another one delivering leaves its
// notices to that one. So users see one order, and no lock is held while their
// functions run.
func (c *Client) deliver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.delivering {
		// If the reader continued while another goroutine delivers slowly, the server
		// would decide how much memory the notices take.
		if !c.noticesFull() {
			return
		}
		c.changed.Wait()
	}
	c.delivering = true
	for c.core.HasNotices() {
		if c.noticesFull() {
			c.changed.Broadcast() // the reader may wait for this
		}
		batch := c.core.TakeNotices(c.spareNotices)
		c.spareNotices = nil
		c.mu.Unlock()
		for i := range batch {
			c.deliverNotice(&batch[i])
		}
		clear(batch)
		c.mu.Lock()
		if c.spareBuffer.keep(cap(batch), len(batch), minSpare, maxSpare) {
			c.spareNotices = batch[:0]
		}
	}
	c.delivering = false
	c.changed.Broadcast()
}

// Above one of these limits, the reader waits for the delivery of the pending notices. A
// client that may create znodes below a recursive watch can cause events with long paths.
const (
	maxPendingNotices   = 4096
	maxPendingPathBytes = 4 << 20
)

// noticesFull reports whether the pending notices exceed a limit. c.mu is held.
func (c *Client) noticesFull() bool {
	n, pathBytes := c.core.PendingNotices()
	return n > maxPendingNotices || pathBytes > maxPendingPathBytes
}

// Sizes of the notice buffer between deliveries: kept always, and kept at most.
const (
	minSpare = 16
	maxSpare = 256
)

// deliverNotice delivers one notice. Only the delivering goroutine calls it.
func (c *Client) deliverNotice(n *session.Notice) {
	switch n.Kind {
	case session.NoticeReply:
		n.Call.Done()
	case session.NoticeState:
		c.deliverState(&n.State)
	case session.NoticeEvent:
		c.deliverEvent(&n.Event)
	case session.NoticeMark:
		switch m := n.Mark.(type) {
		case *listener:
			c.listeners = append(c.listeners, m)
			if m.State != nil && !m.stopped.Load() {
				m.State(c.deliveringState)
			}
		case func():
			m()
		case drained:
			for l := range c.activeListeners() {
				if l.Drained != nil {
					l.Drained()
				}
			}
		}
	}
}

// activeListeners yields the listeners that are not stopped, and removes the others.
func (c *Client) activeListeners() func(yield func(*listener) bool) {
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

// deliverState reports a change of state. Requests made from here on belong to the
// session that the change is about. A request that a user makes while one session
// lives must not run in the next one.
func (c *Client) deliverState(s *session.StateChange) {
	c.deliveringState = convertState(*s)
	c.mu.Lock()
	if c.epoch != s.Epoch {
		c.epoch, c.watchUsers = s.Epoch, nil
	}
	c.lastState = c.deliveringState
	c.mu.Unlock()
	c.logState(&c.deliveringState)
	if s.State == session.Expired || s.State == session.Closed || s.State == session.AuthFailed {
		c.watchers.closeAll()
	}
	for l := range c.activeListeners() {
		if l.State != nil {
			l.State(c.deliveringState)
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
	args := []slog.Attr{slog.String("state", s.State.String()), logSession(s.SessionID)}
	if s.Err != nil {
		args = append(args, slog.Any("err", s.Err))
	}
	c.opts.Logger.LogAttrs(context.Background(), level, "zk: session state", args...)
	c.logTimeout(s)
}

// logSession returns the attribute of a session id, in hexadecimal as in ZooKeeper's logs.
func logSession(id int64) slog.Attr {
	return slog.String("session", "0x"+strconv.FormatUint(uint64(id), 16))
}

// logTimeout warns once per session if the servers granted another timeout than
// requested. After a crash, locks then become free earlier or later than the user
// expects.
func (c *Client) logTimeout(s *StateChange) {
	asked := c.opts.SessionTimeout.Truncate(time.Millisecond)
	if s.Timeout == 0 || s.Timeout == asked || s.SessionID == c.timeoutWarned {
		return
	}
	c.timeoutWarned = s.SessionID
	c.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn, "zk: the servers granted another session timeout than requested",
		slog.Duration("asked", asked), slog.Duration("given", s.Timeout), logSession(s.SessionID))
}

// deliverEvent reports a watch event: first to the channels that wait for it, then to
// the listeners.
func (c *Client) deliverEvent(e *session.Event) {
	ev := Event{Type: EventType(e.Type), Path: c.root.strip(e.Path), Zxid: e.Zxid, Received: e.Received, Conn: e.Conn}
	if ev.Type == EventPersistentWatchRemoved {
		c.endPersistent(e.Path, ev)
	} else {
		c.watchers.fire(wire.EventType(ev.Type), e.Path, ev)
	}
	for l := range c.activeListeners() {
		if l.Event != nil {
			l.Event(ev)
		}
	}
}
