package differential

import (
	"github.com/zklock/zklock/internal/wire"
)

// waitingScript returns a script that waits for the servers, which have short timeouts. Other
// scripts use the servers at the same time.
func (w *writer) waitingScript() Script {
	s := w.prelude()
	for range 2 + w.r.IntN(3) {
		for range 2 + w.r.IntN(8) {
			s = append(s, w.next()...)
		}
		s = append(s, w.wait()...)
	}
	return s
}

// wait returns steps that wait for an expiry or a collection.
func (w *writer) wait() Script {
	slot := w.r.IntN(slots)
	switch w.r.IntN(4) {
	case 0:
		return w.collectContainer()
	case 1:
		return w.collectTTL()
	case 2:
		return append(w.ephemerals(slot), Step{Kind: KindExpire, Slot: slot}, w.resume(slot, "right"))
	}
	return append(w.ephemerals(slot), Step{Kind: KindVanish, Slot: slot}, w.resume(slot, "right"))
}

// ephemerals returns steps that create ephemeral nodes and watches on them.
func (w *writer) ephemerals(slot int) Script {
	open := []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	var s Script
	for i, path := range []string{"/e", "/a/s", "/b/s"} {
		mode := wire.ModeEphemeralSequential
		if i == 0 {
			mode = wire.ModeEphemeral
		}
		mk := w.step(wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: below(path), ACL: open, Flags: mode}})
		mk.Slot = slot
		s = append(s, mk)
	}
	for range 2 {
		s = append(s, w.step(wire.MultiOp{Op: wire.OpExists, Req: &wire.ExistsRequest{Path: below("/e"), Watch: true}}),
			w.step(wire.MultiOp{Op: wire.OpAddWatch, Req: &wire.AddWatchRequest{Path: below(one(w, "", "/a")), Mode: wire.AddWatchPersistentRecursive}}))
	}
	return s
}

// mk returns a request that creates a node with an open ACL.
func (w *writer) mk(op wire.OpCode, path string, mode wire.CreateMode) Step {
	open := []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	return w.step(wire.MultiOp{Op: op, Req: &wire.CreateRequest{Path: below(path), ACL: open, Flags: mode}})
}

// collectContainer returns steps that use and empty nested containers. A container that never had a
// child remains.
func (w *writer) collectContainer() Script {
	return Script{
		w.mk(wire.OpCreateContainer, "/unused", wire.ModeContainer),
		w.mk(wire.OpCreateContainer, "/outer", wire.ModeContainer),
		w.mk(wire.OpCreateContainer, "/outer/inner", wire.ModeContainer),
		w.mk(wire.OpCreate2, "/outer/inner/x", wire.ModePersistent),
		w.step(wire.MultiOp{Op: wire.OpExists, Req: &wire.ExistsRequest{Path: below("/outer/inner"), Watch: true}}),
		w.step(wire.MultiOp{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: below("/outer"), Watch: true}}),
		w.step(wire.MultiOp{Op: wire.OpAddWatch, Req: &wire.AddWatchRequest{Path: below("/outer"), Mode: wire.AddWatchMode(w.r.IntN(2))}}),
		// No request until the server has deleted both.
		w.quiet(Step{Kind: KindGone, Path: below("/outer")}, wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: below("/outer/inner/x"), Version: -1}}),
		w.step(wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: below("/unused")}}),
		w.step(wire.MultiOp{Op: wire.OpGetChildren2, Req: &wire.GetChildren2Request{Path: below("")}}),
		w.step(wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: below("/unused"), Version: -1}}),
	}
}

// collectTTL returns steps that create nodes with a TTL. An expired node with a child remains until
// the child is deleted.
func (w *writer) collectTTL() Script {
	open := []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	ttl := func(path string, ttl int64) wire.MultiOp {
		return wire.MultiOp{Op: wire.OpCreateTTL, Req: &wire.CreateTTLRequest{Path: below(path), ACL: open, Flags: wire.ModePersistentTTL, TTL: ttl}}
	}
	return Script{
		w.mk(wire.OpCreate, "/t", wire.ModePersistent),
		w.step(wire.MultiOp{Op: wire.OpMulti, Req: &wire.MultiRequest{Ops: []wire.MultiOp{
			ttl("/t/parent", 1), {Op: wire.OpCreate, Req: &wire.CreateRequest{Path: below("/t/parent/x"), ACL: open}},
		}}}),
		w.step(ttl("/t/long", 3_600_000)),
		w.step(wire.MultiOp{Op: wire.OpAddWatch, Req: &wire.AddWatchRequest{Path: below("/t"), Mode: wire.AddWatchMode(w.r.IntN(2))}}),
		w.quiet(Step{Kind: KindGone, Path: below("/t/short")}, ttl("/t/short", 1)),
		w.step(wire.MultiOp{Op: wire.OpGetChildren2, Req: &wire.GetChildren2Request{Path: below("/t")}}),
		w.step(wire.MultiOp{Op: wire.OpExists, Req: &wire.ExistsRequest{Path: below("/t/parent")}}),
		w.quiet(Step{Kind: KindGone, Path: below("/t/parent")}, wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: below("/t/parent/x"), Version: -1}}),
		w.step(wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: below("/t/long"), Version: -1}}),
		w.step(wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: below("/t"), Version: -1}}),
	}
}

// quiet begins a wait with a request. Its reply and events are read after the wait, so they do not
// show an intermediate state.
func (w *writer) quiet(wait Step, op wire.MultiOp) Step {
	st := w.step(op)
	wait.Slot, wait.Burst = st.Slot, []Step{st}
	return wait
}
