package wire

import "github.com/zklock/zklock/internal/jute"

// SyncRequest waits until the server has applied everything that the leader had
// committed when it saw the request (OpSync).
type SyncRequest struct {
	Path string
}

// Decode reads the request.
func (q *SyncRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
}

// Append appends the request.
func (q *SyncRequest) Append(b []byte) []byte {
	return jute.AppendString(b, q.Path)
}

// SyncResponse answers OpSync with the request's path.
type SyncResponse struct {
	Path string
}

// Decode reads the answer.
func (q *SyncResponse) Decode(r *jute.Reader) {
	q.Path = r.String()
}

// Append appends the answer.
func (q *SyncResponse) Append(b []byte) []byte {
	return jute.AppendString(b, q.Path)
}
