package wire

import "github.com/zklock/zklock/internal/jute"

// GetChildrenRequest asks for the names of the children of the node Path
// (OpGetChildren). Watch also sets a one-time watch on them.
type GetChildrenRequest struct {
	Path  string
	Watch bool
}

// Decode reads the request.
func (q *GetChildrenRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Watch = r.Bool()
}

// Append appends the request.
func (q *GetChildrenRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendBool(b, q.Watch)
}

// GetChildrenResponse answers OpGetChildren with names, not paths, in no order.
type GetChildrenResponse struct {
	Children []string
}

// Decode reads the answer.
func (p *GetChildrenResponse) Decode(r *jute.Reader) {
	p.Children = r.Strings()
}

// Append appends the answer.
func (p *GetChildrenResponse) Append(b []byte) []byte {
	return jute.AppendStrings(b, p.Children)
}
