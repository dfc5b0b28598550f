package wire

import "github.com/zklock/zklock/internal/jute"

// WatcherType says which watches of a path a request means
// (org.apache.zookeeper.Watcher.WatcherType).
type WatcherType int32

// The kinds of watches. Servers before 3.9 don't know the last two.
const (
	WatcherChildren            WatcherType = 1
	WatcherData                WatcherType = 2
	WatcherAny                 WatcherType = 3
	WatcherPersistent          WatcherType = 4
	WatcherPersistentRecursive WatcherType = 5
)

// CheckWatchesRequest asks whether this connection has a watch of kind Type on
// Path (OpCheckWatches); if not, the answer's header says ErrNoWatcher. The
// answer is [Empty].
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
