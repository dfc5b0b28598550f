package wire

import "github.com/zklock/zklock/internal/jute"

// SetDataRequest replaces the data of the znode Path if its version is Version; -1
// means any (OpSetData). Nil Data sets null data.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Decode reads the request; Data aliases the frame.
func (q *SetDataRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Data = r.Buffer()
	q.Version = r.Int32()
}

// Append appends the request.
func (q *SetDataRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	b = jute.AppendBuffer(b, q.Data)
	return jute.AppendInt32(b, q.Version)
}

// SetDataResponse answers OpSetData with the Stat after the change.
type SetDataResponse struct {
	Stat Stat
}

// Decode reads the answer.
func (p *SetDataResponse) Decode(r *jute.Reader) {
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *SetDataResponse) Append(b []byte) []byte {
	return p.Stat.Append(b)
}

// DeleteRequest deletes the znode Path if its version is Version; -1 means any
// (OpDelete). The answer is [Empty].
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

// CheckVersionRequest fails its multi unless the znode Path exists and has the
// version Version; -1 means any (OpCheck). It must not be sent outside a multi,
// because it harms a 3.8.0 server. Its result has no body.
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

// ReconfigRequest changes the members of an ensemble (OpReconfig). The answer is a
// [GetDataResponse] with the new configuration. The lists are texts in ZooKeeper's
// server syntax. They are buffers here, because Java's client sends null for unused
// lists, for which nil stands. CurConfigID is the version that the change is based
// on, or -1 for any.
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
