package wire

import "github.com/zklock/zklock/internal/jute"

// Perm is a set of permissions (org.apache.zookeeper.ZooDefs.Perms). Zero permits
// nothing.
type Perm int32

// The permissions, one bit each. PermCreate and PermDelete concern a znode's
// children.
const (
	PermRead   Perm = 1
	PermWrite  Perm = 2
	PermCreate Perm = 4
	PermDelete Perm = 8
	PermAdmin  Perm = 16
	PermAll    Perm = 31
)

// ACL is one entry of a znode's access control list. It gives the identity Scheme:ID
// the permissions Perms.
type ACL struct {
	Perms  Perm
	Scheme string
	ID     string
}

// minACLSize is the size of the smallest entry: the permissions and two lengths.
const minACLSize = 12

// Decode reads one entry. ZooKeeper accepts Java's null in fields that it does not
// read: as the scheme, which is then unknown, and as the ID of "auth" (kazoo writes
// null there) and of unknown schemes. Such a null becomes the empty string. As the ID
// of a scheme that reads the ID, null is malformed.
func (a *ACL) Decode(r *jute.Reader) {
	a.Perms = Perm(r.Int32())
	a.Scheme = r.StringOrNull()
	switch a.Scheme {
	case "world", "digest", "ip", "x509", "sasl", "super":
		a.ID = r.String()
	default:
		a.ID = r.StringOrNull()
	}
}

// Append appends one entry.
func (a *ACL) Append(b []byte) []byte {
	b = jute.AppendInt32(b, int32(a.Perms))
	b = jute.AppendString(b, a.Scheme)
	return jute.AppendString(b, a.ID)
}

// decodeACLs reads a vector of entries; nil is Java's null.
func decodeACLs(r *jute.Reader) []ACL {
	n := r.VectorLen(minACLSize)
	if n < 0 {
		return nil
	}
	acls := make([]ACL, n)
	for i := range acls {
		acls[i].Decode(r)
		if r.Err() != nil {
			return nil
		}
	}
	return acls
}

// appendACLs appends a vector of entries; nil becomes Java's null.
func appendACLs(b []byte, acls []ACL) []byte {
	b = jute.AppendVectorLen(b, len(acls), acls == nil)
	for i := range acls {
		b = acls[i].Append(b)
	}
	return b
}

// GetACLRequest requests the ACL of the znode Path (OpGetACL).
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

// GetACLResponse answers OpGetACL. Without the admin permission, the server masks the
// digests in the entries.
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

// SetACLRequest replaces the ACL of the znode Path if the ACL's version
// (Stat.Aversion) is Version; -1 means any (OpSetACL).
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
