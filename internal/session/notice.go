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

// StateChange tells of a new state.
type StateChange struct {
	State     State
	SessionID int64         // the session it is about
	Timeout   time.Duration // negotiated; 0 before the first session
	Sent      time.Duration // when the ConnectRequest was encoded, for the connected states
	Conn      uint64        // number of the connection, from 1
	Err       error         // why; nil for the connected states
	// Epoch counts the sessions that ended. Calls submitted with it belong to
	// the session that the change is about; after Expired, to the next one.
	Epoch uint64
}

// Event is a watch that fired or was removed.
type Event struct {
	Type     wire.EventType
	Path     string
	Zxid     int64 // the change's, or -1 where the server does not tell
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

// Notice is what a user is to be told next.
type Notice struct {
	Kind  NoticeKind
	Call  *Call
	State StateChange
	Event Event
	Mark  any
}

// Mark puts a notice of the driver's own behind those that are there, so that
// what it does keeps its place in the order.
func (c *Core) Mark(m any) { c.notices = append(c.notices, Notice{Kind: NoticeMark, Mark: m}) }

// HasNotices reports whether TakeNotices would return any.
func (c *Core) HasNotices() bool { return len(c.notices) > 0 }

// Untold is how many notices TakeNotices would return.
func (c *Core) Untold() int { return len(c.notices) }

// TakeNotices returns what is to be told, in order, and keeps spare as room for
// the next. The calls in it are the submitter's again.
func (c *Core) TakeNotices(spare []Notice) []Notice {
	out := c.notices
	c.notices = spare[:0]
	return out
}

// finishCall hands a call back.
func (c *Core) finishCall(call *Call) {
	call.state = idle
	c.notices = append(c.notices, Notice{Kind: NoticeReply, Call: call})
}

// failCall hands a call back that has no answer.
func (c *Core) failCall(call *Call, fault error, applied Outcome) {
	call.Result.Fault, call.Result.Applied = fault, applied
	c.finishCall(call)
}

// tellState enters a state and tells of it.
func (c *Core) tellState(s State, err error) {
	change := StateChange{State: s, SessionID: c.sessionID, Timeout: c.negotiated, Conn: c.conn, Err: err, Epoch: c.epoch}
	if s == Connected || s == ConnectedReadOnly {
		change.Sent = c.connectSent
	}
	c.state = s
	c.notices = append(c.notices, Notice{Kind: NoticeState, State: change})
}

// tellEvent tells of a watch event.
func (c *Core) tellEvent(t wire.EventType, path string, zxid int64, now time.Duration) {
	e := Event{Type: t, Path: path, Zxid: zxid, Received: now, Conn: c.conn}
	c.notices = append(c.notices, Notice{Kind: NoticeEvent, Event: e})
}
