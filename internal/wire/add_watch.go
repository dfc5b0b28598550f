package wire

import "github.com/zklock/zklock/internal/jute"

// AddWatchMode says how far a lasting watch reaches
// (org.apache.zookeeper.AddWatchMode).
type AddWatchMode int32

// The two lasting watches. Both survive firing; the recursive one sees the
// node and everything below, but no change of a list of children as such.
const (
	AddWatchPersistent          AddWatchMode = 0
	AddWatchPersistentRecursive AddWatchMode = 1
)

// AddWatchRequest sets a lasting watch on Path, which need not exist
// (OpAddWatch).
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

// ErrorResponse is an error code as a body of its own: OpAddWatch answers with
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
