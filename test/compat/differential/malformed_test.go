package differential

import (
	"bytes"
	"encoding/binary"

	"github.com/zklock/zklock/internal/wire"
)

// malformed returns a request with a malformed body. It avoids bodies that only Java accepts, which
// are in the list of differences.
func (w *writer) malformed() Step {
	st := w.step(w.harmless())
	body := st.Body
	several := st.Op == wire.OpMulti || st.Op == wire.OpMultiRead
	switch w.r.IntN(8) {
	case 0:
		st.Body = nil
	case 1:
		st.Body = append(body, bytes.Repeat([]byte{1}, 1+w.r.IntN(9))...)
	case 2:
		st.Body = []byte{0, 0, 0, 9, 'x'}
	case 3, 4:
		// An invalid length of the path, or of the next field.
		at := one(w, 0, 4+int(binary.BigEndian.Uint32(body)))
		if several {
			at = one(w, 0, 9)
		}
		if len(body) >= at+4 {
			binary.BigEndian.PutUint32(body[at:], w.wrongLength(st.Op))
		}
	default:
		st.Body = body[:w.r.IntN(len(body)+1)]
	}
	return st
}

// wrongLength returns a length that both servers reject.
func (w *writer) wrongLength(op wire.OpCode) uint32 {
	switch op {
	case wire.OpDelete, wire.OpGetEphemerals, wire.OpSync, wire.OpMultiRead, wire.OpMulti:
		return one[uint32](w, 0xfffffffe, 0x7fffffff, 0x80000000, 1<<20)
	case wire.OpSetACL:
		return one[uint32](w, 0xffffffff, 0x7fffffff, 1<<20)
	}
	return one[uint32](w, 0xffffffff, 0xfffffffe, 0x7fffffff, 0x80000000, 1<<20)
}

// harmless returns an operation that ends Java's server in no malformed form, unlike one with a TTL
// or a quota.
func (w *writer) harmless() wire.MultiOp {
	open := []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	path := below(one(w, "/a", "/b", "/c", "/a/x"))
	del := wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: path, Version: -1}}
	mk := wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path, Data: []byte("d"), ACL: open}}
	check := wire.MultiOp{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: path, Version: -1}}
	get := wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: path}}
	return one(w, mk, mk, del, get,
		wire.MultiOp{Op: wire.OpCreate2, Req: &wire.CreateRequest{Path: path, ACL: open}},
		wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path, Data: []byte("d"), Version: -1}},
		wire.MultiOp{Op: wire.OpExists, Req: &wire.ExistsRequest{Path: path, Watch: true}},
		wire.MultiOp{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: path, Watch: true}},
		wire.MultiOp{Op: wire.OpGetChildren2, Req: &wire.GetChildren2Request{Path: path}},
		wire.MultiOp{Op: wire.OpGetACL, Req: &wire.GetACLRequest{Path: path}},
		wire.MultiOp{Op: wire.OpSetACL, Req: &wire.SetACLRequest{Path: path, ACL: open, Version: -1}},
		wire.MultiOp{Op: wire.OpSync, Req: &wire.SyncRequest{Path: path}},
		wire.MultiOp{Op: wire.OpAddWatch, Req: &wire.AddWatchRequest{Path: path}},
		wire.MultiOp{Op: wire.OpCheckWatches, Req: &wire.CheckWatchesRequest{Path: path, Type: 3}},
		wire.MultiOp{Op: wire.OpRemoveWatches, Req: &wire.RemoveWatchesRequest{Path: path, Type: 3}},
		wire.MultiOp{Op: wire.OpGetEphemerals, Req: &wire.GetEphemeralsRequest{PrefixPath: path}},
		wire.MultiOp{Op: wire.OpGetAllChildrenNumber, Req: &wire.GetAllChildrenNumberRequest{Path: path}},
		wire.MultiOp{Op: wire.OpReconfig, Req: &wire.ReconfigRequest{}},
		wire.MultiOp{Op: wire.OpMulti, Req: &wire.MultiRequest{Ops: []wire.MultiOp{mk, check, del}}},
		wire.MultiOp{Op: wire.OpMulti, Req: &wire.MultiRequest{Ops: []wire.MultiOp{check, get}}},
		wire.MultiOp{Op: wire.OpMultiRead, Req: &wire.MultiReadRequest{Ops: []wire.MultiOp{get, get}}},
		wire.MultiOp{Op: wire.OpMultiRead, Req: &wire.MultiReadRequest{Ops: []wire.MultiOp{get, mk}}},
	)
}

// unknown returns a request with an unknown operation.
func (w *writer) unknown() Step {
	op := one[wire.OpCode](w, 0, 10, 23, 50, 99, 108, 1000, -1, -2, -9, -12, 1<<31-1, -1<<31)
	return Step{Kind: KindRequest, Slot: w.r.IntN(slots), Op: op, Xid: 7, Body: []byte{0, 0, 0, 0}}
}

// rawHandshake returns a malformed or unusual connect request.
func (w *writer) rawHandshake() Step {
	full := make([]byte, 44)
	binary.BigEndian.PutUint32(full[12:], 30000)
	binary.BigEndian.PutUint32(full[24:], 16)
	h := &Handshake{Session: "new"}
	switch w.r.IntN(5) {
	case 0:
		h.Raw = full[:w.r.IntN(44)]
	case 1:
		h.Raw = append(full, one[byte](w, 0, 1))
	case 2:
		h.Raw = append(full, 0, 1, 2, 3)
	case 3:
		binary.BigEndian.PutUint32(full[24:], one[uint32](w, 0xfffffffe, 0x7fffffff, 17, 0x80000000))
		h.Raw = full
	default:
		binary.BigEndian.PutUint32(full[24:], 3)
		h.Raw = full[:31]
	}
	return Step{Kind: KindHandshake, Slot: w.r.IntN(slots), Hand: h}
}
