package wire

import "github.com/zklock/zklock/internal/jute"

// GetDataRequest asks for the content of the node Path (OpGetData). Watch also
// sets a one-time watch, unless the node is missing.
type GetDataRequest struct {
	Path  string
	Watch bool
}

// Decode reads the request.
func (q *GetDataRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Watch = r.Bool()
}

// Append appends the request.
func (q *GetDataRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendBool(b, q.Watch)
}

// GetDataResponse answers OpGetData, and OpReconfig with the new configuration.
// Nil Data is a node without data, unlike an empty one.
type GetDataResponse struct {
	Data []byte
	Stat Stat
}

// Decode reads the answer; Data aliases the frame.
func (p *GetDataResponse) Decode(r *jute.Reader) {
	p.Data = r.Buffer()
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *GetDataResponse) Append(b []byte) []byte {
	b = jute.AppendBuffer(b, p.Data)
	return p.Stat.Append(b)
}
