package wire

import "github.com/zklock/zklock/internal/jute"

// SetACLRequest replaces the ACL of the node Path if the ACL's version
// (Stat.Aversion) is Version, or whatever it is if Version is -1 (OpSetACL).
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Decode reads the request.
func (q *SetACLRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.ACL = decodeACLs(r)
	q.Version = r.Int32()
}

// Append appends the request.
func (q *SetACLRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	b = appendACLs(b, q.ACL)
	return jute.AppendInt32(b, q.Version)
}

// SetACLResponse answers OpSetACL with the Stat after the change.
type SetACLResponse struct {
	Stat Stat
}

// Decode reads the answer.
func (p *SetACLResponse) Decode(r *jute.Reader) {
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *SetACLResponse) Append(b []byte) []byte {
	return p.Stat.Append(b)
}
