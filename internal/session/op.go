package session

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Op is one operation: its code, and the arguments that the code takes. The other
// fields are ignored. Paths are server paths, with any chroot.
type Op struct {
	Code    wire.OpCode
	Path    string
	Data    []byte
	ACL     []wire.ACL // nil means all permissions for everyone
	Mode    wire.CreateMode
	TTL     int64 // milliseconds
	Version int32 // -1 means any
	Watch   bool
	// Type selects the watches for OpRemoveWatches and OpCheckWatches.
	Type wire.WatcherType
	// WatchMode is the kind of watch that OpAddWatch adds.
	WatchMode wire.AddWatchMode
	// Watches are what OpSetWatches sets, on the present connection only. It has no nil
	// lists.
	Watches *wire.SetWatches
	// Members are the change that OpReconfig makes.
	Members *wire.ReconfigRequest
	// Scheme and Data are the credentials of OpAuth.
	Scheme string
	// MaxData limits the bytes of data that the result of OpGetData keeps; 0 means no limit.
	MaxData int
	// Batchable permits the core to send a create2, a delete, or a getChildren2
	// without a watch in a batch with other calls. Other operations ignore it.
	Batchable bool
	// Sub holds the operations of OpMulti or OpMultiRead. A create among them has the
	// code OpCreate.
	Sub []Op
}

// sendable reports whether a client may send the operation by itself. OpCheck is
// excluded: outside a multi it harms servers of the 3.8 series.
func sendable(code wire.OpCode) bool {
	switch code {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL,
		wire.OpDelete, wire.OpExists, wire.OpGetData, wire.OpSetData,
		wire.OpGetACL, wire.OpSetACL, wire.OpGetChildren, wire.OpGetChildren2,
		wire.OpSync, wire.OpMulti, wire.OpMultiRead, wire.OpAuth,
		wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpAddWatch, wire.OpSetWatches,
		wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpWhoAmI, wire.OpReconfig:
		return true
	}
	return false
}

// inMulti reports whether the operation may be part of a multi, or of a multiRead if
// read is set.
func inMulti(code wire.OpCode, read bool) bool {
	switch code {
	case wire.OpCreate, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete,
		wire.OpSetData, wire.OpCheck:
		return !read
	case wire.OpGetData, wire.OpGetChildren:
		return read
	}
	return false
}

// valid reports whether the operation, with the operations in it, may be sent.
func (o *Op) valid() bool {
	if !sendable(o.Code) || o.Code == wire.OpSetWatches && o.Watches == nil || o.Code == wire.OpReconfig && o.Members == nil {
		return false
	}
	if o.Code != wire.OpMulti && o.Code != wire.OpMultiRead {
		return true
	}
	for i := range o.Sub {
		if !inMulti(o.Sub[i].Code, o.Code == wire.OpMultiRead) {
			return false
		}
	}
	return true
}

// setsWatch reports whether o sets a watch that the core sets again on the next connection.
func (o *Op) setsWatch() bool {
	switch o.Code {
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		return o.Watch
	}
	return o.Code == wire.OpAddWatch
}

// lists reports whether the answer to o can be of any size, because it lists what other clients
// created.
func (o *Op) lists() bool {
	switch o.Code {
	case wire.OpGetChildren, wire.OpGetChildren2, wire.OpGetEphemerals, wire.OpMultiRead, wire.OpGetData, wire.OpGetACL:
		return true
	}
	return false
}

// headerSize is the size of a request header.
const headerSize = 8

// size returns the length of the operation's body on the wire, or slightly more. It
// is computed before encoding, so that a request that is too large is refused before
// anything is written.
func (o *Op) size() int {
	// Path, data, and scheme with their lengths, and 24 bytes for the numbers that
	// any operation has. An estimate that is too high does no harm. For a request with a
	// watch, it is also at least the size of the request that sets the watch again.
	n := 4 + len(o.Path) + 4 + len(o.Data) + len(o.Scheme) + 24
	for i := range o.ACL {
		n += 12 + len(o.ACL[i].Scheme) + len(o.ACL[i].ID)
	}
	if o.ACL == nil {
		n += 12 + len("worldanyone")
	}
	if o.Watches != nil {
		for _, list := range [][]string{o.Watches.DataWatches, o.Watches.ExistWatches, o.Watches.ChildWatches} {
			n += 4
			for _, path := range list {
				n += 4 + len(path)
			}
		}
	}
	if m := o.Members; m != nil {
		n += 12 + len(m.JoiningServers) + len(m.LeavingServers) + len(m.NewMembers)
	}
	for i := range o.Sub {
		n += multiHeaderSize + o.Sub[i].size()
	}
	return n
}

// appendTo appends the operation's body. The records are local values that never
// escape, so encoding does not allocate.
func (o *Op) appendTo(b []byte) []byte {
	switch o.Code {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		open := openACL()
		r := wire.CreateRequest{Path: o.Path, Data: o.Data, ACL: orOpen(o.ACL, open[:]), Flags: o.Mode}
		return r.Append(b)
	case wire.OpCreateTTL:
		open := openACL()
		r := wire.CreateTTLRequest{Path: o.Path, Data: o.Data, ACL: orOpen(o.ACL, open[:]), Flags: o.Mode, TTL: o.TTL}
		return r.Append(b)
	case wire.OpDelete, wire.OpCheck:
		r := wire.DeleteRequest{Path: o.Path, Version: o.Version}
		return r.Append(b)
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		r := wire.GetDataRequest{Path: o.Path, Watch: o.Watch}
		return r.Append(b)
	case wire.OpSetData:
		r := wire.SetDataRequest{Path: o.Path, Data: o.Data, Version: o.Version}
		return r.Append(b)
	case wire.OpGetACL, wire.OpSync, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber:
		return jute.AppendString(b, o.Path)
	case wire.OpSetACL:
		open := openACL()
		r := wire.SetACLRequest{Path: o.Path, ACL: orOpen(o.ACL, open[:]), Version: o.Version}
		return r.Append(b)
	case wire.OpMulti, wire.OpMultiRead:
		return appendMulti(b, o.Sub)
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		r := wire.RemoveWatchesRequest{Path: o.Path, Type: o.Type}
		return r.Append(b)
	case wire.OpAddWatch:
		r := wire.AddWatchRequest{Path: o.Path, Mode: o.WatchMode}
		return r.Append(b)
	case wire.OpSetWatches:
		return o.Watches.Append(b)
	case wire.OpReconfig:
		return o.Members.Append(b)
	case wire.OpAuth:
		r := wire.AuthPacket{Scheme: o.Scheme, Auth: o.Data}
		return r.Append(b)
	}
	return b // whoAmI, ping and closeSession have no body
}

// openACL returns the ACL that gives all permissions to everyone.
func openACL() [1]wire.ACL {
	return [1]wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
}

// orOpen returns acl, or open if acl is nil.
func orOpen(acl, open []wire.ACL) []wire.ACL {
	if acl == nil {
		return open
	}
	return acl
}

// appendRequest appends a framed request.
func appendRequest(b []byte, xid int32, o *Op) []byte {
	b, start := wire.BeginFrame(b)
	h := wire.RequestHeader{Xid: xid, Op: o.Code}
	b = o.appendTo(h.Append(b))
	return wire.EndFrame(b, start)
}
