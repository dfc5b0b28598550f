package wire

import "github.com/zklock/zklock/internal/jute"

// AddWatchMode is the scope of a persistent watch
// (org.apache.zookeeper.AddWatchMode).
type AddWatchMode int32

// The two persistent watches. Both stay when they fire. The recursive one covers the
// znode and all its descendants, but reports no changes of lists of children.
const (
	AddWatchPersistent          AddWatchMode = 0
	AddWatchPersistentRecursive AddWatchMode = 1
)

// AddWatchRequest sets a persistent watch on Path, which need not exist (OpAddWatch).
type AddWatchRequest struct {
	Path string
	Mode AddWatchMode
}

// Decode reads the request.
func (q *AddWatchRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Mode = AddWatchMode(r.Int32())
}

// Append appends the request.
func (q *AddWatchRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendInt32(b, int32(q.Mode))
}

// ErrorResponse is a body that contains only an error code. OpAddWatch answers with
// it, always ErrOK, and so does each failed result of a multi.
type ErrorResponse struct {
	Err ErrCode
}

// Decode reads the 4 bytes.
func (p *ErrorResponse) Decode(r *jute.Reader) {
	p.Err = ErrCode(r.Int32())
}

// Append appends the 4 bytes.
func (p *ErrorResponse) Append(b []byte) []byte {
	return jute.AppendInt32(b, int32(p.Err))
}

// WatcherType selects the watches of a path
// (org.apache.zookeeper.Watcher.WatcherType).
type WatcherType int32

// The kinds of watches. Servers before 3.9 do not know the last two.
const (
	WatcherChildren            WatcherType = 1
	WatcherData                WatcherType = 2
	WatcherAny                 WatcherType = 3
	WatcherPersistent          WatcherType = 4
	WatcherPersistentRecursive WatcherType = 5
)

// CheckWatchesRequest asks whether this connection has a watch of kind Type on Path
// (OpCheckWatches). If not, the header of the answer has ErrNoWatcher. The answer is
// [Empty].
type CheckWatchesRequest struct {
	Path string
	Type WatcherType
}

// Decode reads the request.
func (q *CheckWatchesRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Type = WatcherType(r.Int32())
}

// Append appends the request.
func (q *CheckWatchesRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendInt32(b, int32(q.Type))
}

// RemoveWatchesRequest removes this connection's watches of kind Type on Path
// (OpRemoveWatches). If there are none, the header of the answer has ErrNoWatcher.
// The answer is [Empty].
type RemoveWatchesRequest struct {
	Path string
	Type WatcherType
}

// Decode reads the request.
func (q *RemoveWatchesRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Type = WatcherType(r.Int32())
}

// Append appends the request.
func (q *RemoveWatchesRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendInt32(b, int32(q.Type))
}

// SetWatches sets one-time watches again after a reconnect (OpSetWatches). The server
// first sends an event for each watch that would have fired since the transaction
// RelativeZxid, and then the answer, which is [Empty].
//
// A nil list is sent as Java's null, on which a Java server closes the connection.
// Use an empty list instead.
type SetWatches struct {
	RelativeZxid int64
	DataWatches  []string
	ExistWatches []string
	ChildWatches []string
}

// Decode reads the request.
func (q *SetWatches) Decode(r *jute.Reader) {
	q.RelativeZxid = r.Int64()
	q.DataWatches = r.Strings()
	q.ExistWatches = r.Strings()
	q.ChildWatches = r.Strings()
}

// Append appends the request.
func (q *SetWatches) Append(b []byte) []byte {
	b = jute.AppendInt64(b, q.RelativeZxid)
	b = jute.AppendStrings(b, q.DataWatches)
	b = jute.AppendStrings(b, q.ExistWatches)
	return jute.AppendStrings(b, q.ChildWatches)
}

// SetWatches2 is [SetWatches] with persistent watches (OpSetWatches2), for which the
// server sends no missed events. Nil lists are not permitted either.
type SetWatches2 struct {
	RelativeZxid               int64
	DataWatches                []string
	ExistWatches               []string
	ChildWatches               []string
	PersistentWatches          []string
	PersistentRecursiveWatches []string
}

// Decode reads the request.
func (q *SetWatches2) Decode(r *jute.Reader) {
	q.RelativeZxid = r.Int64()
	q.DataWatches = r.Strings()
	q.ExistWatches = r.Strings()
	q.ChildWatches = r.Strings()
	q.PersistentWatches = r.Strings()
	q.PersistentRecursiveWatches = r.Strings()
}

// Append appends the request.
func (q *SetWatches2) Append(b []byte) []byte {
	b = jute.AppendInt64(b, q.RelativeZxid)
	b = jute.AppendStrings(b, q.DataWatches)
	b = jute.AppendStrings(b, q.ExistWatches)
	b = jute.AppendStrings(b, q.ChildWatches)
	b = jute.AppendStrings(b, q.PersistentWatches)
	return jute.AppendStrings(b, q.PersistentRecursiveWatches)
}

// EventType is what happened to a watched znode
// (org.apache.zookeeper.Watcher.Event.EventType).
type EventType int32

// The event types. EventNone concerns the session, not a znode.
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

// KeeperState is the state of the session in an event
// (org.apache.zookeeper.Watcher.Event.KeeperState). Events about znodes always have
// StateSyncConnected.
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

// WatcherEvent reports that a watch fired. It follows a [ReplyHeader] with XidEvent.
// Path is the path of the changed znode, even for a recursive watch on an ancestor.
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
