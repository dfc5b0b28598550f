package wire

import "github.com/zklock/zklock/internal/jute"

// SetDataRequest replaces the content of the node Path if its version is
// Version, or whatever it is if Version is -1 (OpSetData). Nil Data leaves the
// node without data.
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
