package differential

import (
	"github.com/zklock/zklock/internal/wire"
)

// read returns an operation that changes at most watches.
func (w *writer) read() wire.MultiOp {
	path, watch := w.path(), w.maybe(2)
	switch w.r.IntN(18) {
	case 0, 1, 2:
		return wire.MultiOp{Op: wire.OpExists, Req: &wire.ExistsRequest{Path: path, Watch: watch}}
	case 3, 4, 5:
		return wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: path, Watch: watch}}
	case 6, 7:
		return wire.MultiOp{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: path, Watch: watch}}
	case 8, 9:
		return wire.MultiOp{Op: wire.OpGetChildren2, Req: &wire.GetChildren2Request{Path: path, Watch: watch}}
	case 10:
		return wire.MultiOp{Op: wire.OpGetACL, Req: &wire.GetACLRequest{Path: path}}
	case 11:
		return wire.MultiOp{Op: wire.OpSync, Req: &wire.SyncRequest{Path: path}}
	case 12:
		prefix := below(one(w, "", "/a", "/", "/e", "/a/s"))
		return wire.MultiOp{Op: wire.OpGetEphemerals, Req: &wire.GetEphemeralsRequest{PrefixPath: one(w, prefix, "/", "", " / ", "  ", "\t")}}
	case 13:
		return wire.MultiOp{Op: wire.OpGetAllChildrenNumber, Req: &wire.GetAllChildrenNumberRequest{Path: path}}
	case 14:
		return wire.MultiOp{Op: wire.OpWhoAmI, Req: &wire.Empty{}}
	case 15:
		return wire.MultiOp{Op: wire.OpPing, Req: &wire.Empty{}}
	}
	return w.multiRead()
}

// watch returns an operation on watches.
func (w *writer) watch() wire.MultiOp {
	path := w.path()
	switch w.r.IntN(8) {
	case 0, 1, 2, 3:
		mode := one(w, wire.AddWatchPersistent, wire.AddWatchPersistentRecursive, wire.AddWatchPersistentRecursive, wire.AddWatchMode(w.r.IntN(5)-1))
		return wire.MultiOp{Op: wire.OpAddWatch, Req: &wire.AddWatchRequest{Path: path, Mode: mode}}
	case 4, 5:
		return wire.MultiOp{Op: wire.OpRemoveWatches, Req: &wire.RemoveWatchesRequest{Path: path, Type: wire.WatcherType(w.r.IntN(7))}}
	}
	return wire.MultiOp{Op: wire.OpCheckWatches, Req: &wire.CheckWatchesRequest{Path: path, Type: wire.WatcherType(w.r.IntN(7))}}
}

// setWatches returns the request of a client after a reconnect, with its watches and its last
// transaction id. A null list is malformed.
func (w *writer) setWatches() Step {
	paths := func() []string {
		list := []string{}
		if w.maybe(40) {
			return nil
		}
		for range w.r.IntN(4) {
			list = append(list, w.path())
		}
		return list
	}
	st := w.step(wire.MultiOp{Op: wire.OpSetWatches, Req: &wire.SetWatches{DataWatches: paths(), ExistWatches: paths(), ChildWatches: paths()}})
	if w.maybe(2) {
		st = w.step(wire.MultiOp{Op: wire.OpSetWatches2, Req: &wire.SetWatches2{
			DataWatches: paths(), ExistWatches: paths(), ChildWatches: paths(),
			PersistentWatches: paths(), PersistentRecursiveWatches: paths(),
		}})
	}
	st.Back = 1 + w.r.IntN(12)
	if !w.maybe(4) {
		st.Xid = wire.XidSetWatches
	}
	return st
}

// authenticate returns a valid or an invalid authentication.
func (w *writer) authenticate() Step {
	q := &wire.AuthPacket{Scheme: "digest", Auth: []byte(one(w, "u:p", "u:p", "v:q", "w:"))}
	switch w.r.IntN(10) {
	case 0:
		q.Auth = []byte(superSecret)
	case 1:
		q.Auth = one(w, nil, []byte{}, []byte("nocolon"), []byte("a:b:c"))
	case 2:
		q.Scheme = one(w, "ip", "world", "nobody", "", "auth", "super")
	case 3:
		q.Scheme, q.Auth = "ip", []byte("10.0.0.1")
	case 4:
		q.Type = w.r.Int32()
	}
	st := w.step(wire.MultiOp{Op: wire.OpAuth, Req: q})
	st.Xid = one[int32](w, wire.XidAuth, wire.XidAuth, 5)
	return st
}
