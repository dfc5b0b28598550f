package zk

import (
	"slices"
	"time"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// Op is one operation for [Client.Go] or [MultiOp]. The functions whose names end in
// Op return one. The zero Op is invalid. An Op refers to the slices that it was made
// from: do not change them before it is done.
type Op struct {
	op session.Op
	// absolute: the path is a server path, outside any chroot.
	absolute bool
	// absoluteSub says which operations of a multi are absolute; nil if none is.
	absoluteSub []bool
	// mixed: the multi contains an operation that it must not contain.
	mixed bool
}

// CreateOp creates a znode, and sets the result's Path and Stat. On servers before 3.5, the
// Stat contains only what the client knows without asking, and no times; the first such
// create there fails with [ErrConnectionLost], for which [Applied] returns [AppliedNo]. A nil
// acl means [OpenACL]. Nil and empty data are different. The modes with a TTL are invalid here,
// see [CreateTTLOp].
func CreateOp(path string, data []byte, acl []ACL, mode CreateMode) Op {
	code := wire.OpCreate2
	if mode == ModeContainer {
		code = wire.OpCreateContainer
	}
	return Op{op: session.Op{Code: code, Path: path, Data: data, ACL: wireACL(acl), Mode: wire.CreateMode(mode)}}
}

// PlainCreateOp is CreateOp, except that the Stat contains only what the client knows without
// asking: the zxid of the create, the owner, and the length of the data. All servers since
// ZooKeeper 3.4 know the request, also while an ensemble is upgraded from it.
func PlainCreateOp(path string, data []byte, acl []ACL, mode CreateMode) Op {
	op := CreateOp(path, data, acl, mode)
	if op.op.Code == wire.OpCreate2 {
		op.op.Code = wire.OpCreate
	}
	return op
}

// CreateTTLOp creates a znode that the server deletes when it has had no change and
// no children for ttl. ttl has millisecond precision and must be at least one
// millisecond. The mode must be one with a TTL.
func CreateTTLOp(path string, data []byte, acl []ACL, mode CreateMode, ttl time.Duration) Op {
	return Op{op: session.Op{Code: wire.OpCreateTTL, Path: path, Data: data, ACL: wireACL(acl),
		Mode: wire.CreateMode(mode), TTL: ttl.Milliseconds()}}
}

// DeleteOp deletes a znode that has this version; -1 means any.
func DeleteOp(path string, version int32) Op {
	return Op{op: session.Op{Code: wire.OpDelete, Path: path, Version: version}}
}

// SetOp sets the data of a znode that has this version; -1 means any. It sets
// the result's Stat.
func SetOp(path string, data []byte, version int32) Op {
	return Op{op: session.Op{Code: wire.OpSetData, Path: path, Data: data, Version: version}}
}

// CheckOp makes a multi fail unless the znode exists with this version; -1 means any.
// It is invalid outside a multi, because it harms servers of the 3.8 series
// (ZOOKEEPER-2623).
func CheckOp(path string, version int32) Op {
	return Op{op: session.Op{Code: wire.OpCheck, Path: path, Version: version}}
}

// GetOp reads a znode's data and Stat. With watch, one event reports its next change.
// If the znode is missing, the operation fails with [ErrNoNode] and sets no watch.
func GetOp(path string, watch bool) Op {
	return Op{op: session.Op{Code: wire.OpGetData, Path: path, Watch: watch}}
}

// LimitedGetOp is GetOp, except that the result has at most the first most bytes of the data, or
// all if most is 0. The Stat has the length of all data. The server sends all of them, but the
// client keeps only that many bytes. So the results of many operations that are sent together
// take little memory, whatever the znodes contain.
func LimitedGetOp(path string, watch bool, most int) Op {
	op := GetOp(path, watch)
	op.op.MaxData = most
	return op
}

// ExistsOp reads a znode's Stat. With watch, one event reports its next change, or
// its creation if it is missing. If the znode is missing, the operation fails with
// [ErrNoNode].
func ExistsOp(path string, watch bool) Op {
	return Op{op: session.Op{Code: wire.OpExists, Path: path, Watch: watch}}
}

// ChildrenOp lists a znode's children and reads its Stat. With watch, one event
// reports the next change of the list, or the deletion of the znode.
func ChildrenOp(path string, watch bool) Op {
	return Op{op: session.Op{Code: wire.OpGetChildren2, Path: path, Watch: watch}}
}

// GetACLOp reads a znode's access control list and Stat, like [Client.GetACL].
func GetACLOp(path string) Op {
	return Op{op: session.Op{Code: wire.OpGetACL, Path: path}}
}

// SetACLOp sets a znode's access control list, like [Client.SetACL].
func SetACLOp(path string, acl []ACL, version int32) Op {
	return Op{op: session.Op{Code: wire.OpSetACL, Path: path, ACL: wireACL(acl), Version: version}}
}

// AddWatchOp adds a persistent watch, like [Client.AddWatch].
func AddWatchOp(path string, mode AddWatchMode) Op {
	return Op{op: session.Op{Code: wire.OpAddWatch, Path: path, WatchMode: wire.AddWatchMode(mode)}}
}

// SyncOp makes the server apply everything that the leader had committed, before it
// answers later requests of this client.
func SyncOp(path string) Op {
	return Op{op: session.Op{Code: wire.OpSync, Path: path}}
}

// SetWatchesOp sets one-shot watches on several znodes with one request: for each path in
// data, a watch that reports the znode's next change or its deletion; for each path in
// exists, a watch that reports its creation. Before the answer, an event reports each of
// the znodes in data that is missing or that changed after the transaction relativeZxid,
// and each of those in exists that exists. Such an event sets no watch. The watches
// belong to the connection: the client does not set them again on the next one. See
// ZooKeeper's SetWatches record.
func SetWatchesOp(relativeZxid int64, data, exists []string) Op {
	return Op{op: session.Op{Code: wire.OpSetWatches, Watches: &wire.SetWatches{
		RelativeZxid: relativeZxid, DataWatches: nonNil(data), ExistWatches: nonNil(exists), ChildWatches: []string{},
	}}}
}

// nonNil returns an empty list for nil.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// RemoveWatchesOp is [Client.RemoveWatches] as an operation.
func RemoveWatchesOp(path string, kind WatchKind) Op {
	return Op{op: session.Op{Code: wire.OpRemoveWatches, Path: path, Type: wire.WatcherType(kind)}}
}

// MultiOp executes all of ops or none of them: creates, deletes, sets, and checks.
// Alternatively, it reads at one moment: gets and children operations without a
// watch. Each read has a result of its own. (Reading needs servers 3.6 or later, and
// results of children have no Stat.) Other combinations are invalid. Without ops,
// MultiOp only makes a round trip.
func MultiOp(ops ...Op) Op {
	m := Op{op: session.Op{Code: wire.OpMulti, Sub: make([]session.Op, len(ops))}}
	reads := 0
	for i := range ops {
		sub := ops[i].op
		switch sub.Code {
		case wire.OpCreate2:
			// The older code, which all servers know inside a multi.
			sub.Code = wire.OpCreate
		case wire.OpGetChildren2:
			sub.Code = wire.OpGetChildren
			reads++
		case wire.OpGetData:
			reads++
		}
		if ops[i].absolute {
			if m.absoluteSub == nil {
				m.absoluteSub = make([]bool, len(ops))
			}
			m.absoluteSub[i] = true
		}
		m.mixed = m.mixed || sub.Watch
		m.op.Sub[i] = sub
	}
	if reads > 0 {
		m.op.Code = wire.OpMultiRead
	}
	return m
}

// BatchableOp permits the client to send op in one request with other batchable
// operations that are queued at the same time. It is for many goroutines that share
// one client, because a server executes the requests of a session one by one. A
// single queued request is sent at once and unchanged. Creates, deletes, and multis
// of them are batched into one multi. Listings without a watch are batched into one
// reading multi. Other operations ignore it.
//
// Batching changes three things. The Stat of a batched create contains only what the
// client knows without asking, and no times. If another operation of the batch fails,
// op is not executed and fails with [ErrRolledBack], for which [Applied] returns
// [AppliedNo]; repeat it then without BatchableOp. And a batched write may overtake
// listings that were requested earlier, but not those that it would change.
//
// Two creates with the same parent are never in one batch. So each child of a parent
// has its own zxid.
func BatchableOp(op Op) Op {
	op.op.Batchable = true
	return op
}

// check returns an error if the operation must not be sent.
func (o *Op) check() error {
	if o.mixed {
		return ErrInvalidOp
	}
	if o.op.Code == wire.OpMulti || o.op.Code == wire.OpMultiRead {
		for i := range o.op.Sub {
			if err := checkOne(&o.op.Sub[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return checkOne(&o.op)
}

// checkOne checks the path of one operation that is not a multi, and the mode of a create.
func checkOne(o *session.Op) error {
	switch o.Code {
	case 0, wire.OpMulti, wire.OpMultiRead: // 0 is the zero Op
		return ErrInvalidOp
	case wire.OpWhoAmI, wire.OpAuth, wire.OpReconfig:
		return nil
	case wire.OpSetWatches:
		for _, path := range slices.Concat(o.Watches.DataWatches, o.Watches.ExistWatches) {
			if err := checkPath(path, false); err != nil {
				return err
			}
		}
		return nil
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		if !o.Mode.Valid() || o.Mode.TTL() {
			return ErrInvalidOp
		}
	case wire.OpCreateTTL:
		if !o.Mode.TTL() || o.TTL < 1 {
			return ErrInvalidOp
		}
	}
	return checkPath(o.Path, o.Mode.Sequential())
}

// opName returns the name of an operation for errors.
func opName(code wire.OpCode) string {
	switch code {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return "create"
	case wire.OpGetData:
		return "get"
	case wire.OpSetData:
		return "set"
	case wire.OpGetChildren, wire.OpGetChildren2:
		return "children"
	case wire.OpGetACL:
		return "get ACL"
	case wire.OpSetACL:
		return "set ACL"
	case wire.OpMultiRead:
		return "multi"
	case wire.OpAuth:
		return "add auth"
	case wire.OpAddWatch:
		return "add watch"
	case wire.OpRemoveWatches:
		return "remove watches"
	case wire.OpSetWatches:
		return "set watches"
	case wire.OpGetEphemerals:
		return "ephemerals"
	case wire.OpGetAllChildrenNumber:
		return "all children number"
	case wire.OpWhoAmI:
		return "who am I"
	}
	return code.String()
}

// Result is the answer to one operation. The operation determines which fields are
// set; the others are zero.
type Result struct {
	// Err is nil if the operation succeeded, else an *[Error].
	Err error
	// Zxid is the zxid in the header of the answer: for a change its own, for a read
	// the last one that the server had applied. Zero if there was no answer.
	Zxid int64
	// Path is the path of the created znode, with the sequence number if any. It is
	// relative to the client's chroot.
	Path string
	// Stat is set by create, exists, get, set, children, and get of an ACL. A create
	// inside a multi has none, except for containers and znodes with a TTL.
	Stat Stat
	// Data is the data that get read. Nil and empty are different, as on the server.
	// It belongs to the receiver.
	Data []byte
	// Children holds the names that children read, in no particular order.
	Children []string
	// ACL is the access control list that was read.
	ACL []ACL
	// Results has one element per operation of a multi. If one operation failed, its
	// Err has the cause, and the Err of the others is [ErrRolledBack].
	Results []Result
	// Sent is when the request was encoded for its connection, never later than its
	// write. If the machine was suspended shortly before, Sent may be too early by the
	// length of the suspend. Received is when the answer was read. Both are valid only
	// if Conn is not 0, and Received only if there was an answer. They count from an
	// arbitrary moment in this process, and continue while the machine is suspended.
	Sent, Received time.Duration
	// Conn is the number of the connection on which the request was sent. Each
	// successful handshake of a client counts, from 1. Zero if the request was never
	// sent.
	Conn uint64
}
