package wire

import "github.com/zklock/zklock/internal/jute"

// CheckVersionRequest fails its multi unless the node Path exists and, with a
// Version other than -1, has that version (OpCheck). It must not be sent outside
// a multi: a 3.8.0 server takes harm from it. Its result has no body.
type CheckVersionRequest struct {
	Path    string
	Version int32
}

// Decode reads the request.
func (q *CheckVersionRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Version = r.Int32()
}

// Append appends the request.
func (q *CheckVersionRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendInt32(b, q.Version)
}
