package zk

import "github.com/zklock/zklock/internal/wire"

// Stat is what a server keeps about a znode, as org.apache.zookeeper.data.Stat.
type Stat struct {
	Czxid          int64 // zxid of the change that created the znode
	Mzxid          int64 // zxid of the last change of its data
	Ctime          int64 // creation time by the leader's clock, milliseconds since 1970
	Mtime          int64 // time of the last change of its data, milliseconds since 1970
	Version        int32 // how often the data changed
	Cversion       int32 // how often the list of children changed
	Aversion       int32 // how often the ACL changed
	EphemeralOwner int64 // id of the session that owns an ephemeral znode, else 0
	DataLength     int32 // bytes of data
	NumChildren    int32 // number of children
	Pzxid          int64 // zxid of the last change of the list of children
}

// Perm is a set of permissions in an [ACL], as ZooDefs.Perms.
type Perm int32

// The permissions that ZooKeeper knows.
const (
	PermRead   Perm = 1 << iota // read the data and list the children
	PermWrite                   // set the data
	PermCreate                  // create children
	PermDelete                  // delete children
	PermAdmin                   // set the ACL
	PermAll    Perm = 31        // all of them
)

// ACL is one entry of a znode's access control list, as
// org.apache.zookeeper.data.ACL: an identity and what it may do.
type ACL struct {
	Perms  Perm
	Scheme string // "world", "auth", "digest", "ip", "x509", ...
	ID     string // in the form that the scheme wants; "anyone" for world
}

// OpenACL is the list that lets everybody do everything. Each call returns a
// slice of its own.
func OpenACL() []ACL { return []ACL{{PermAll, "world", "anyone"}} }

// CreatorACL is the list that gives every right to the identities that the
// creating session has added with [Client.AddAuth] or [Options].Auth, and none
// to others. A server refuses it with [ErrInvalidACL] if there is no such identity.
func CreatorACL() []ACL { return []ACL{{PermAll, "auth", ""}} }

// ReadACL is the list that lets everybody read and nobody change.
func ReadACL() []ACL { return []ACL{{PermRead, "world", "anyone"}} }

// CreateMode says what kind of znode a create makes, as
// org.apache.zookeeper.CreateMode.
type CreateMode int32

// The kinds of znode. The two with a TTL need [Client.CreateTTL] or [CreateTTLOp].
const (
	ModePersistent              CreateMode = 0
	ModeEphemeral               CreateMode = 1 // deleted when its session ends
	ModePersistentSequential    CreateMode = 2 // ten digits are appended to the name
	ModeEphemeralSequential     CreateMode = 3
	ModeContainer               CreateMode = 4 // deleted by the server some time after its last child
	ModePersistentTTL           CreateMode = 5 // deleted when unchanged and childless for its TTL
	ModePersistentSequentialTTL CreateMode = 6
)

// AddWatchMode says how far a lasting watch reaches, as
// org.apache.zookeeper.AddWatchMode.
type AddWatchMode int32

// The lasting watches, which stay when they fire.
const (
	// WatchPersistent tells of changes of one znode and of its list of children.
	WatchPersistent AddWatchMode = 0
	// WatchRecursive tells of changes of a znode and of all below it, but not
	// of lists of children.
	WatchRecursive AddWatchMode = 1
)

// WatchKind says which watches [Client.RemoveWatches] removes, as
// Watcher.WatcherType.
type WatchKind int32

// The kinds of watch.
const (
	WatchKindChildren   WatchKind = 1
	WatchKindData       WatchKind = 2 // those of get and exists
	WatchKindAny        WatchKind = 3
	WatchKindPersistent WatchKind = 4 // servers from 3.9 on
	WatchKindRecursive  WatchKind = 5 // servers from 3.9 on
)

// Identity is one identity of a session as a server sees it: a scheme and a
// user without any secret.
type Identity struct {
	Scheme, User string
}

// wireACL converts a list for sending. The open list becomes nil, which stands
// for it and takes no room; an empty one stays, for the server to refuse.
func wireACL(acl []ACL) []wire.ACL {
	if acl == nil || len(acl) == 1 && acl[0] == (ACL{PermAll, "world", "anyone"}) {
		return nil
	}
	out := make([]wire.ACL, len(acl))
	for i, a := range acl {
		out[i] = wire.ACL{Perms: wire.Perm(a.Perms), Scheme: a.Scheme, ID: a.ID}
	}
	return out
}

// fromWireACL converts a list that was read.
func fromWireACL(acl []wire.ACL) []ACL {
	out := make([]ACL, len(acl))
	for i, a := range acl {
		out[i] = ACL{Perms: Perm(a.Perms), Scheme: a.Scheme, ID: a.ID}
	}
	return out
}
