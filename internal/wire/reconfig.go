package wire

import "github.com/zklock/zklock/internal/jute"

// ReconfigRequest changes the members of an ensemble (OpReconfig). The answer
// is a [GetDataResponse] with the new configuration. The lists are texts in
// ZooKeeper's server syntax; they are buffers here because Java's client sends
// null for those it does not use, which nil stands for. CurConfigID is the
// version the change builds on, or -1 for any.
type ReconfigRequest struct {
	JoiningServers []byte
	LeavingServers []byte
	NewMembers     []byte
	CurConfigID    int64
}

// Decode reads the request; the lists alias the frame.
func (q *ReconfigRequest) Decode(r *jute.Reader) {
	q.JoiningServers = r.Buffer()
	q.LeavingServers = r.Buffer()
	q.NewMembers = r.Buffer()
	q.CurConfigID = r.Int64()
}

// Append appends the request.
func (q *ReconfigRequest) Append(b []byte) []byte {
	b = jute.AppendBuffer(b, q.JoiningServers)
	b = jute.AppendBuffer(b, q.LeavingServers)
	b = jute.AppendBuffer(b, q.NewMembers)
	return jute.AppendInt64(b, q.CurConfigID)
}
