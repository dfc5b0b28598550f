package wire

import "github.com/zklock/zklock/internal/jute"

// DeleteRequest deletes the node Path if its version is Version, or whatever it
// is if Version is -1 (OpDelete). The answer is [Empty].
type DeleteRequest struct {
	Path    string
	Version int32
}

// Decode reads the request.
func (q *DeleteRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Version = r.Int32()
}

// Append appends the request.
func (q *DeleteRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendInt32(b, q.Version)
}
