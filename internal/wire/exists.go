package wire

import "github.com/zklock/zklock/internal/jute"

// ExistsRequest asks for the Stat of the node Path (OpExists). Watch also sets a
// one-time watch, which unlike others is set on a missing node too.
type ExistsRequest struct {
	Path  string
	Watch bool
}

// Decode reads the request.
func (q *ExistsRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Watch = r.Bool()
}

// Append appends the request.
func (q *ExistsRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendBool(b, q.Watch)
}

// ExistsResponse answers OpExists; a missing node is ErrNoNode in the header.
type ExistsResponse struct {
	Stat Stat
}

// Decode reads the answer.
func (p *ExistsResponse) Decode(r *jute.Reader) {
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *ExistsResponse) Append(b []byte) []byte {
	return p.Stat.Append(b)
}
