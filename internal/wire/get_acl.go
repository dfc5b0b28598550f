package wire

import "github.com/zklock/zklock/internal/jute"

// GetACLRequest asks for the ACL of the node Path (OpGetACL).
type GetACLRequest struct {
	Path string
}

// Decode reads the request.
func (q *GetACLRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
}

// Append appends the request.
func (q *GetACLRequest) Append(b []byte) []byte {
	return jute.AppendString(b, q.Path)
}

// GetACLResponse answers OpGetACL. Without the admin permission the digests in
// the entries are masked by the server.
type GetACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Decode reads the answer.
func (p *GetACLResponse) Decode(r *jute.Reader) {
	p.ACL = decodeACLs(r)
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *GetACLResponse) Append(b []byte) []byte {
	b = appendACLs(b, p.ACL)
	return p.Stat.Append(b)
}
