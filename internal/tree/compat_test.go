package tree

import (
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// TestBehaviorFollowsLaterReleases checks behaviors that releases after 3.8.0 changed, see
// docs/compatibility.md.
func TestBehaviorFollowsLaterReleases(t *testing.T) {
	w := newHarness(t, Config{})
	p, other := w.dial(), w.dial()
	p.mkACL("/locked", acl(wire.PermAdmin, "world", "anyone"))
	_, err := p.exists("/locked", false)
	p.want(err, wire.ErrNoAuth, "exists without READ")

	// A one-shot watch does not replace a persistent one.
	p.mk("/a", 0)
	p.addWatch("/a", wire.AddWatchPersistent)
	p.get("/a", true)
	p.set("/a", "", -1)
	if want := w.tree.Zxid(); p.zxids[0] != want {
		t.Errorf("event of transaction %d, want %d", p.zxids[0], want)
	}
	p.set("/a", "", -1)
	p.wantEvents("data /a", "data /a")

	// checkWatches does not find the watch of another connection.
	other.exists("/b", true)
	check := &wire.CheckWatchesRequest{Path: "/b", Type: wire.WatcherData}
	p.want(p.call(wire.OpCheckWatches, check).Err, wire.ErrNoWatcher, "check for the watch of another connection")

	p.addWatch("/c", wire.AddWatchPersistentRecursive)
	remove := &wire.RemoveWatchesRequest{Path: "/c", Type: wire.WatcherPersistentRecursive}
	p.want(p.call(wire.OpRemoveWatches, remove).Err, wire.ErrOK, "removal by a later type")

	// A write that cannot be decoded uses no transaction id, except a multi.
	zxid := w.tree.Zxid()
	p.want(p.call(wire.OpSetData, nil).Err, wire.ErrMarshalling, "setData without a body")
	if got := w.tree.Zxid(); got != zxid {
		t.Errorf("transaction %d after %d", got, zxid)
	}
	bad := []wire.MultiOp{opCreate("/a/b/c", 0), {Op: wire.OpCreate, Req: &wire.CreateRequest{Path: "/x", ACL: openACL(), Flags: 7}}}
	p.want(p.call(wire.OpMulti, &wire.MultiRequest{Ops: bad}).Err, wire.ErrMarshalling, "multi with an invalid mode")
	if got := w.tree.Zxid(); got != zxid+1 {
		t.Errorf("transaction %d after %d", got, zxid)
	}
	bad = []wire.MultiOp{{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: "/x"}}}
	p.want(p.call(wire.OpMulti, &wire.MultiRequest{Ops: bad}).Err, wire.ErrMarshalling, "multi without a list")
	if got := w.tree.Zxid(); got != zxid+1 {
		t.Errorf("transaction %d after %d", got, zxid)
	}
	w.check()
}
