package zk

import (
	"time"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// Op is one operation for [Client.Go] or [MultiOp], made by the functions whose
// names end in Op. The zero Op is invalid. An Op refers to the slices it was
// made from: don't change them before it is done.
type Op struct {
	op session.Op
	// absolute paths are the server's, outside any chroot.
	absolute bool
	// mixed marks a multi that contains what a multi cannot.
	mixed bool
}

// CreateOp creates a znode, and sets the result's Path and Stat. A nil acl means
// [OpenACL]. A nil data is kept apart from an empty one. The modes with a TTL
// are invalid here, see [CreateTTLOp].
func CreateOp(path string, data []byte, acl []ACL, mode CreateMode) Op {
	code := wire.OpCreate2
	if mode == ModeContainer {
		code = wire.OpCreateContainer
	}
	return Op{op: session.Op{Code: code, Path: path, Data: data, ACL: wireACL(acl), Mode: wire.CreateMode(mode)}}
}

// CreateTTLOp creates a znode that the server deletes once it was unchanged
// and without children for ttl, which counts in milliseconds and must be at
// least one. The mode must be one with a TTL.
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

// CheckOp, inside a multi, fails it unless the znode exists with this version;
// -1 means any. It is invalid by itself: servers of the 3.8 series are harmed
// by it (ZOOKEEPER-2623).
func CheckOp(path string, version int32) Op {
	return Op{op: session.Op{Code: wire.OpCheck, Path: path, Version: version}}
}

// GetOp reads a znode's data and Stat; with watch, one event tells of its next
// change. A missing znode is [ErrNoNode] and sets no watch.
func GetOp(path string, watch bool) Op {
	return Op{op: session.Op{Code: wire.OpGetData, Path: path, Watch: watch}}
}

// ExistsOp reads a znode's Stat; with watch, one event tells of its next
// change, or of its creation if it is missing. A missing znode is [ErrNoNode].
func ExistsOp(path string, watch bool) Op {
	return Op{op: session.Op{Code: wire.OpExists, Path: path, Watch: watch}}
}

// ChildrenOp lists a znode's children and reads its Stat; with watch, one event
// tells of the next change of the list, or that the znode was deleted.
func ChildrenOp(path string, watch bool) Op {
	return Op{op: session.Op{Code: wire.OpGetChildren2, Path: path, Watch: watch}}
}

// GetACLOp reads a znode's access control list and Stat, as [Client.GetACL].
func GetACLOp(path string) Op {
	return Op{op: session.Op{Code: wire.OpGetACL, Path: path}}
}

// SyncOp makes the server catch up with what the leader had committed before
// later requests of this client are answered.
func SyncOp(path string) Op {
	return Op{op: session.Op{Code: wire.OpSync, Path: path}}
}

// MultiOp does all of ops or none: creates, deletes, sets and checks. Or it
// reads at one moment: gets and children operations without a watch, of which
// each has a result of its own (from servers 3.6 on; the results of children
// have no Stat). Other mixtures are invalid. Without ops it does nothing, by a
// round trip.
func MultiOp(ops ...Op) Op {
	m := Op{op: session.Op{Code: wire.OpMulti, Sub: make([]session.Op, len(ops))}}
	reads := 0
	for i := range ops {
		sub := ops[i].op
		switch sub.Code {
		case wire.OpCreate2:
			// The older code: all servers know it inside a multi.
			sub.Code = wire.OpCreate
		case wire.OpGetChildren2:
			sub.Code = wire.OpGetChildren
			reads++
		case wire.OpGetData:
			reads++
		}
		m.mixed = m.mixed || sub.Watch
		m.op.Sub[i] = sub
	}
	if reads > 0 {
		m.op.Code = wire.OpMultiRead
	}
	return m
}

// JoinOp lets op share a request with others of the same moment that permit it
// too. It is for many goroutines on one client, whose requests a server would
// otherwise carry out one by one; a request that is alone is sent at once and as it
// is. Creates and deletes, and multis of them, are joined into one multi, and
// listings without a watch into one multi that reads; other operations ignore it.
//
// It changes three things. A create that was joined has in its Stat only what is
// known without asking: no times. If another one of those it was joined with
// fails, it is not done, and fails with [ErrRolledBack], which [Applied] says; it
// has to be made again then, without JoinOp. And it may go ahead of listings that
// were asked for before it, though not of those which it would change.
//
// No two creates of one parent are ever joined: each has a zxid that no other
// child of that parent has.
func JoinOp(op Op) Op {
	op.op.Join = true
	return op
}

// check reports what is wrong with an operation before it is sent.
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

// checkOne checks the path, and the mode of a create.
func checkOne(o *session.Op) error {
	switch o.Code {
	case wire.OpWhoAmI, wire.OpAuth:
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

// name is what errors call the operation.
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
	case wire.OpGetEphemerals:
		return "ephemerals"
	case wire.OpGetAllChildrenNumber:
		return "all children number"
	case wire.OpWhoAmI:
		return "who am I"
	}
	return code.String()
}
