package wire

import "github.com/zklock/zklock/internal/jute"

// EventType says what happened to a watched node
// (org.apache.zookeeper.Watcher.Event.EventType).
type EventType int32

// The kinds of events. EventNone is about the session, not a node.
const (
	EventNone                   EventType = -1
	EventNodeCreated            EventType = 1
	EventNodeDeleted            EventType = 2
	EventNodeDataChanged        EventType = 3
	EventNodeChildrenChanged    EventType = 4
	EventDataWatchRemoved       EventType = 5
	EventChildWatchRemoved      EventType = 6
	EventPersistentWatchRemoved EventType = 7
)

// KeeperState is the state of the session as an event shows it
// (org.apache.zookeeper.Watcher.Event.KeeperState). Events about nodes always
// carry StateSyncConnected.
type KeeperState int32

// The states.
const (
	StateDisconnected      KeeperState = 0
	StateSyncConnected     KeeperState = 3
	StateAuthFailed        KeeperState = 4
	StateConnectedReadOnly KeeperState = 5
	StateSASLAuthenticated KeeperState = 6
	StateClosed            KeeperState = 7
	StateExpired           KeeperState = -112
)

// WatcherEvent tells that a watch fired. It follows a [ReplyHeader] with
// XidEvent. Path is the node's, also for a recursive watch set further up.
type WatcherEvent struct {
	Type  EventType
	State KeeperState
	Path  string
}

// Decode reads the event.
func (e *WatcherEvent) Decode(r *jute.Reader) {
	e.Type = EventType(r.Int32())
	e.State = KeeperState(r.Int32())
	e.Path = r.String()
}

// Append appends the event.
func (e *WatcherEvent) Append(b []byte) []byte {
	b = jute.AppendInt32(b, int32(e.Type))
	b = jute.AppendInt32(b, int32(e.State))
	return jute.AppendString(b, e.Path)
}
