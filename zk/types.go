package zk

import (
	"crypto/sha1"
	"encoding/base64"

	"github.com/zklock/zklock/internal/wire"
)

// Stat is the metadata of a znode, as org.apache.zookeeper.data.Stat.
type Stat struct {
	Czxid          int64 // zxid of the change that created the znode
	Mzxid          int64 // zxid of the last change of its data
	Ctime          int64 // creation time by the leader's clock, milliseconds since 1970
	Mtime          int64 // time of the last change of its data, milliseconds since 1970
	Version        int32 // number of changes of the data
	Cversion       int32 // number of changes of the list of children
	Aversion       int32 // number of changes of the ACL
	EphemeralOwner int64 // ID of the session that owns an ephemeral znode, else 0
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
	ID     string // in the form that the scheme requires; "anyone" for world
}

// OpenACL returns the list that gives all permissions to everyone. Each call returns
// a new slice.
func OpenACL() []ACL { return []ACL{{PermAll, "world", "anyone"}} }

// CreatorACL returns the list that gives all permissions to the identities that the
// creating session has added with [Client.AddAuth] or [Options].Auth, and none to
// anyone else. If there is no such identity, the server refuses the list with
// [ErrInvalidACL].
func CreatorACL() []ACL { return []ACL{{PermAll, "auth", ""}} }

// ReadACL returns the list that lets everyone read and no one change the znode.
func ReadACL() []ACL { return []ACL{{PermRead, "world", "anyone"}} }

// DigestACL returns the list that gives these permissions to clients that have added the
// credentials "user:password" of the scheme digest; see [Client.AddAuth]. The list contains
// a digest of the password, not the password, as DigestAuthenticationProvider.
func DigestACL(perms Perm, user, password string) []ACL {
	sum := sha1.Sum([]byte(user + ":" + password)) // what the servers expect
	return []ACL{{perms, "digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}}
}

// CreateMode is the kind of znode that a create makes, as
// org.apache.zookeeper.CreateMode.
type CreateMode int32

// The kinds of znodes. The two with a TTL need [Client.CreateTTL] or [CreateTTLOp].
const (
	ModePersistent              CreateMode = 0
	ModeEphemeral               CreateMode = 1 // deleted when its session ends
	ModePersistentSequential    CreateMode = 2 // ten digits are appended to the name
	ModeEphemeralSequential     CreateMode = 3
	ModeContainer               CreateMode = 4 // deleted by the server some time after its last child
	ModePersistentTTL           CreateMode = 5 // deleted after its TTL without changes and children
	ModePersistentSequentialTTL CreateMode = 6
)

// AddWatchMode is the scope of a persistent watch, as org.apache.zookeeper.AddWatchMode.
type AddWatchMode int32

// The modes of persistent watches.
const (
	// WatchPersistent reports changes of one znode and of its list of children.
	WatchPersistent AddWatchMode = 0
	// WatchRecursive reports changes of a znode and all its descendants, but not of
	// lists of children.
	WatchRecursive AddWatchMode = 1
)

// WatchKind selects the watches that [Client.RemoveWatches] removes, as
// Watcher.WatcherType.
type WatchKind int32

// The kinds of watches.
const (
	WatchKindChildren   WatchKind = 1
	WatchKindData       WatchKind = 2 // watches of get and exists
	WatchKindAny        WatchKind = 3
	WatchKindPersistent WatchKind = 4 // servers from 3.9 on
	WatchKindRecursive  WatchKind = 5 // servers from 3.9 on
)

// Identity is one identity of a session as a server sees it: a scheme and a user,
// without any secret.
type Identity struct {
	Scheme, User string
}

// wireACL converts a list for sending. The open list becomes nil, which stands for it
// and needs no memory. An empty list stays empty, so that the server refuses it.
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
