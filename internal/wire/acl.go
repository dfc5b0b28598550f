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

// schemeAuth stands for the identities of whoever asks, and needs no ID.
const schemeAuth = "auth"

// Decode reads one entry. kazoo writes a null for the ID of the scheme "auth",
// which ZooKeeper takes as it never looks at it; it becomes the empty string. With
// any other scheme a null is malformed.
func (a *ACL) Decode(r *jute.Reader) {
	a.Perms = Perm(r.Int32())
	a.Scheme = r.String()
	if a.Scheme == schemeAuth {
		a.ID = r.StringOrNull()
	} else {
		a.ID = r.String()
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
