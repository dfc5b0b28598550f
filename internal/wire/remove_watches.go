package wire

import "github.com/zklock/zklock/internal/jute"

// RemoveWatchesRequest removes this connection's watches of kind Type on Path
// (OpRemoveWatches), or answers ErrNoWatcher. The answer is [Empty].
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
