package wire

import "github.com/zklock/zklock/internal/jute"

// Perm is a set of permissions (org.apache.zookeeper.ZooDefs.Perms). Zero
// permits nothing.
type Perm int32

// The permissions, one bit each. Create and delete are about a node's children.
const (
	PermRead   Perm = 1
	PermWrite  Perm = 2
	PermCreate Perm = 4
	PermDelete Perm = 8
	PermAdmin  Perm = 16
	PermAll    Perm = 31
)

// ACL gives the identity Scheme:ID the permissions Perms on one node.
type ACL struct {
	Perms  Perm
	Scheme string
	ID     string
}

// aclMin is the room the smallest entry takes: the permissions and two lengths.
const aclMin = 12

// Decode reads one entry. ZooKeeper takes Java's null where it does not look: for
// the scheme, which is then none that it knows, and for the ID of "auth" (kazoo
// writes one there) and of schemes that it does not know. A null becomes the empty
// string there; as the ID of a scheme that reads it, it is malformed.
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
	n := r.VectorLen(aclMin)
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
