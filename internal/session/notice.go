package session

import (
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// State is the state of the session and its connection.
type State uint8

// The states. AuthFailed and Closed are final.
const (
	Disconnected State = iota
	Connected
	ConnectedReadOnly
	Expired
	AuthFailed
	Closed
)

// StateChange reports a new state.
type StateChange struct {
	State     State
	SessionID int64         // the session that the change is about
	Timeout   time.Duration // negotiated; 0 before the first session
	Sent      time.Duration // when the ConnectRequest was encoded; set for the connected states
	GivenUp   time.Duration // when a request to resume the session was last left without an answer, or 0
	Conn      uint64        // number of the connection, from 1
	Server    string        // the server in use; set for the connected states
	Err       error         // the reason; nil for the connected states
	// Epoch is the number of sessions that have ended. Calls submitted with it belong
	// to the session that the change is about, and after Expired to the next one.
	Epoch uint64
}

// Event is a watch that fired or was removed.
type Event struct {
	Type     wire.EventType
	Path     string
	Zxid     int64 // zxid of the change, or -1 if the server does not send it
	Received time.Duration
	Conn     uint64
}

// NoticeKind says which field of a Notice is set.
type NoticeKind uint8

// The kinds of notice.
const (
	NoticeReply NoticeKind = iota // Call is finished
	NoticeState
	NoticeEvent
	NoticeMark // see Core.Mark
)

// Notice is one item to deliver to the user.
type Notice struct {
	Kind  NoticeKind
	Call  *Call
	State StateChange
	Event Event
	Mark  any
}

// Mark appends a notice of the driver's own, so that it is delivered in order with
// the others.
func (c *Core) Mark(m any) { c.notices = append(c.notices, Notice{Kind: NoticeMark, Mark: m}) }

// HasNotices reports whether TakeNotices would return any.
func (c *Core) HasNotices() bool { return len(c.notices) > 0 }

// PendingNotices returns how many notices TakeNotices would return, and how many bytes the
// paths of their events have.
func (c *Core) PendingNotices() (n, pathBytes int) { return len(c.notices), c.noticeBytes }

// TakeNotices returns the notices in order. The core reuses spare for the next ones.
// The calls in the notices belong to the submitter again.
func (c *Core) TakeNotices(spare []Notice) []Notice {
	out := c.notices
	c.notices, c.noticeBytes = spare[:0], 0
	return out
}

// finishCall returns a call to its submitter.
func (c *Core) finishCall(call *Call) {
	call.state = idle
	c.notices = append(c.notices, Notice{Kind: NoticeReply, Call: call})
}

// failCall returns a call that has no answer.
func (c *Core) failCall(call *Call, fault error, applied Outcome) {
	call.Result.Fault, call.Result.Applied = fault, applied
	c.finishCall(call)
}

// notifyState enters a state and reports it.
func (c *Core) notifyState(s State, err error) {
	change := StateChange{State: s, SessionID: c.sessionID, Timeout: c.negotiated, GivenUp: c.givenUp, Conn: c.conn, Err: err, Epoch: c.epoch}
	if s == Connected || s == ConnectedReadOnly {
		change.Sent, change.Server = c.connectSent, c.cfg.Servers[c.current]
	}
	c.state = s
	c.notices = append(c.notices, Notice{Kind: NoticeState, State: change})
}

// notifyEvent reports a watch event.
func (c *Core) notifyEvent(t wire.EventType, path string, zxid int64, now time.Duration) {
	e := Event{Type: t, Path: path, Zxid: zxid, Received: now, Conn: c.conn}
	c.notices = append(c.notices, Notice{Kind: NoticeEvent, Event: e})
	c.noticeBytes += len(path)
}
