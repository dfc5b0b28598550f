package zk

import "time"

// State is the state of a client's session and connection.
type State int

// The states of a client.
const (
	// Disconnected: there is no connection. The session may still live. The client
	// reconnects by itself.
	Disconnected State = iota
	// Connected: the server answers requests.
	Connected
	// ConnectedReadOnly: the server has no quorum and answers only reads. This
	// happens only with [Options].ReadOnly. No answer of such a server proves that
	// the session lives.
	ConnectedReadOnly
	// Expired: the session is over. The client starts another one by itself.
	Expired
	// AuthFailed: authentication failed, for the reason in Err. This state is final.
	AuthFailed
	// Closed: [Client.Close] was called. This state is final.
	Closed
)

// String returns the state in lower-case words.
func (s State) String() string {
	switch s {
	case Disconnected:
		return "disconnected"
	case Connected:
		return "connected"
	case ConnectedReadOnly:
		return "connected read-only"
	case Expired:
		return "expired"
	case AuthFailed:
		return "authentication failed"
	case Closed:
		return "closed"
	}
	return "unknown state"
}

// StateChange reports a new state.
type StateChange struct {
	State     State
	SessionID int64         // the session that the change is about; 0 before the first
	Timeout   time.Duration // negotiated session timeout; 0 before the first session
	// Sent is when the request that started or resumed the session on the present
	// connection was encoded, on the clock of [Result].Sent. It is set for Connected
	// and ConnectedReadOnly.
	Sent time.Duration
	// GivenUp is when a connection last ended before the server had answered the request to
	// resume this session, or 0. The servers may still move the session there, and then
	// execute requests that had no answer before.
	GivenUp time.Duration
	Conn    uint64 // number of the connection, see [Result].Conn
	// Server is the server that answers, as the connection string names it. It is set for
	// Connected and ConnectedReadOnly.
	Server string
	Err    error // the reason for Disconnected, Expired, and AuthFailed
}

// EventType is the kind of change of a watched znode, as Watcher.Event.EventType.
type EventType int32

// The event types.
const (
	EventNodeCreated            EventType = 1
	EventNodeDeleted            EventType = 2
	EventNodeDataChanged        EventType = 3
	EventNodeChildrenChanged    EventType = 4
	EventDataWatchRemoved       EventType = 5
	EventChildWatchRemoved      EventType = 6
	EventPersistentWatchRemoved EventType = 7
)

// Event reports that a watch fired or was removed.
type Event struct {
	Type EventType
	Path string // relative to the client's chroot
	// Zxid is the zxid of the change if the server sends it (3.9 and later), else -1.
	Zxid int64
	// Received is when the event was read, on the clock of [Result].Sent.
	Received time.Duration
	Conn     uint64 // number of the connection, see [Result].Conn
}

// Listener is a set of functions that observe a client. Any of them may be nil.
//
// The client calls one function at a time, in wire order, interleaved with the
// functions given to [Client.Go]. It reports an event before any answer that reflects
// the change. The functions must not block, must not end their goroutine, and must not call
// Close or methods that wait for an answer. They may call Go and Listen.
type Listener struct {
	// State is called with the present state first, then with each change.
	State func(StateChange)
	// Event is called with each watch event, for every watch of the client.
	Event func(Event)
	// Drained is called after everything from one read of the connection has been
	// delivered.
	Drained func()
}
