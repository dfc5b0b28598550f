package wire

import "github.com/zklock/zklock/internal/jute"

// GetChildren2Request is [GetChildrenRequest] for an answer that also has the
// Stat (OpGetChildren2).
type GetChildren2Request struct {
	Path  string
	Watch bool
}

// Decode reads the request.
func (q *GetChildren2Request) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Watch = r.Bool()
}

// Append appends the request.
func (q *GetChildren2Request) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendBool(b, q.Watch)
}

// GetChildren2Response answers OpGetChildren2 with the children's names, in no
// order, and the Stat of the node itself.
type GetChildren2Response struct {
	Children []string
	Stat     Stat
}

// Decode reads the answer.
func (p *GetChildren2Response) Decode(r *jute.Reader) {
	p.Children = r.Strings()
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *GetChildren2Response) Append(b []byte) []byte {
	b = jute.AppendStrings(b, p.Children)
	return p.Stat.Append(b)
}
