package zk

import "time"

// Op is one operation for [Client.Go] or [MultiOp], made by the functions whose
// names end in Op. The zero Op is invalid. An Op refers to the slices it was
// made from: don't change them before it is done.
type Op struct {
	code    int32
	path    string
	data    []byte
	acl     []ACL
	mode    CreateMode
	ttl     time.Duration
	version int32
	watch   bool
	sub     []Op
}

// CreateOp creates a znode. A nil acl means [OpenACL].
func CreateOp(path string, data []byte, acl []ACL, mode CreateMode) Op {
	return Op{code: 15, path: path, data: data, acl: acl, mode: mode}
}

// CreateTTLOp creates a znode that the server deletes once it was unchanged
// and without children for ttl. The mode must be one with a TTL.
func CreateTTLOp(path string, data []byte, acl []ACL, mode CreateMode, ttl time.Duration) Op {
	return Op{code: 21, path: path, data: data, acl: acl, mode: mode, ttl: ttl}
}

// DeleteOp deletes a znode that has this version; -1 means any.
func DeleteOp(path string, version int32) Op { return Op{code: 2, path: path, version: version} }

// SetOp sets the data of a znode that has this version; -1 means any.
func SetOp(path string, data []byte, version int32) Op {
	return Op{code: 5, path: path, data: data, version: version}
}

// CheckOp, inside a multi only, fails it unless the znode has this version; -1 means any.
func CheckOp(path string, version int32) Op { return Op{code: 13, path: path, version: version} }

// GetOp reads a znode's data; with watch, one event tells of its next change.
func GetOp(path string, watch bool) Op { return Op{code: 4, path: path, watch: watch} }

// ExistsOp reads a znode's Stat; with watch, one event tells of its next
// change, or of its creation if it is missing.
func ExistsOp(path string, watch bool) Op { return Op{code: 3, path: path, watch: watch} }

// ChildrenOp lists a znode's children; with watch, one event tells of the
// next change of the list.
func ChildrenOp(path string, watch bool) Op { return Op{code: 12, path: path, watch: watch} }

// SyncOp makes the server catch up with the leader before later requests of
// this client are answered.
func SyncOp(path string) Op { return Op{code: 9, path: path} }

// MultiOp does all of ops or none: creates, deletes, sets and checks; or it
// reads with several gets and children operations without a watch.
func MultiOp(ops ...Op) Op { return Op{code: 14, sub: ops} }
