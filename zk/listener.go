package zk

import "time"

// State is the state of a client's session and connection.
type State int

// The states of a client.
const (
	// Disconnected: no connection; the session may live on. The client
	// reconnects by itself.
	Disconnected State = iota
	// Connected: requests are being answered.
	Connected
	// ConnectedReadOnly: the server has no quorum behind it and answers reads
	// only. Happens with [Options].ReadOnly alone. Nothing that such a server
	// answers proves that the session lives.
	ConnectedReadOnly
	// Expired: the session is over. The client begins another by itself.
	Expired
	// AuthFailed: the server refused credentials. Final.
	AuthFailed
	// Closed: [Client.Close] was called. Final.
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

// StateChange tells of a new state.
type StateChange struct {
	State     State
	SessionID int64         // the session that the change is about; 0 before the first
	Timeout   time.Duration // negotiated session timeout; 0 before the first session
	// Sent is when the request that began or resumed the session on the
	// present connection was encoded for sending, on the clock of
	// [Result].Sent. Set for Connected and ConnectedReadOnly.
	Sent time.Duration
	Conn uint64 // number of the connection, see [Result].Conn
	Err  error  // why, for Disconnected, Expired and AuthFailed
}

// EventType is what happened to a watched znode, as Watcher.Event.EventType.
type EventType int32

// The kinds of event.
const (
	EventNodeCreated            EventType = 1
	EventNodeDeleted            EventType = 2
	EventNodeDataChanged        EventType = 3
	EventNodeChildrenChanged    EventType = 4
	EventDataWatchRemoved       EventType = 5
	EventChildWatchRemoved      EventType = 6
	EventPersistentWatchRemoved EventType = 7
)

// Event tells that a watch fired or was removed.
type Event struct {
	Type EventType
	Path string // relative to the client's chroot
	// Zxid is the change's zxid where the server tells it (from 3.9 on), else -1.
	Zxid int64
	// Received is when the event was read, on the clock of [Result].Sent.
	Received time.Duration
	Conn     uint64 // number of the connection, see [Result].Conn
}

// Listener is a set of functions that follow a client. Any of them may be nil.
//
// All are called one at a time, in the order of the wire and interleaved in
// that order with the functions given to [Client.Go]: an event is told before
// any answer that reflects its change. They must not block and must not call
// methods that wait for an answer, nor Close; they may call Go and Listen.
type Listener struct {
	// State is called with the present state first, then with each change.
	State func(StateChange)
	// Event is called with each watch event, whatever registered the watch.
	Event func(Event)
	// Drained is called after everything that one read from the connection
	// brought has been delivered.
	Drained func()
}
