package tree

import (
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// The fixes of releases after 3.8.0, with and without Compat38.
func TestCompat38RestoresOldBehavior(t *testing.T) {
	for _, compat := range []bool{false, true} {
		w := newWorld(t, Config{Compat38: compat})
		p, other := w.dial(), w.dial()
		p.mkACL("/locked", acl(wire.PermAdmin, "world", "anyone"))
		want := wire.ErrNoAuth
		if compat {
			want = wire.ErrOK
		}
		if _, err := p.exists("/locked", false); err != want {
			t.Errorf("compat %v: exists without READ: %s", compat, err.Name())
		}

		// A one-shot watch replaces a persistent one.
		p.mk("/a", 0)
		p.lasting("/a", wire.AddWatchPersistent)
		p.get("/a", true)
		p.set("/a", "", -1)
		if wantZxid := map[bool]int64{false: w.tree.Zxid(), true: -1}[compat]; p.zxids[0] != wantZxid {
			t.Errorf("compat %v: event of transaction %d, want %d", compat, p.zxids[0], wantZxid)
		}
		p.set("/a", "", -1)
		if got := len(p.takeEvents()); got != map[bool]int{false: 2, true: 1}[compat] {
			t.Errorf("compat %v: %d events by a lasting and a one-shot watch", compat, got)
		}

		// checkWatches finds the watch of another connection.
		other.exists("/b", true)
		want = wire.ErrNoWatcher
		if compat {
			want = wire.ErrOK
		}
		check := &wire.CheckWatchesRequest{Path: "/b", Type: wire.WatcherData}
		if r := p.call(wire.OpCheckWatches, check); r.Err != want {
			t.Errorf("compat %v: check for another's watch: %s", compat, r.Err.Name())
		}

		// Types of later releases.
		want = wire.ErrOK
		if compat {
			want = wire.ErrMarshalling
		}
		p.lasting("/c", wire.AddWatchPersistentRecursive)
		remove := &wire.RemoveWatchesRequest{Path: "/c", Type: wire.WatcherPersistentRecursive}
		if r := p.call(wire.OpRemoveWatches, remove); r.Err != want {
			t.Errorf("compat %v: removal by a later type: %s", compat, r.Err.Name())
		}
		w.check()
	}
}

// In 3.8.0 a recursive watch is in both tables. So the watch of getData replaces it
// in one of them, and the other still reports deletions below.
func TestCompat38RecursiveWatchIsInBothTables(t *testing.T) {
	w := newWorld(t, Config{Compat38: true})
	p := w.dial()
	p.mk("/a", 0)
	p.mk("/a/b", 0)
	p.lasting("/a", wire.AddWatchPersistentRecursive)
	if c := w.tree.Counts(); c.Watches != 2 {
		t.Errorf("%d watches", c.Watches)
	}
	p.get("/a", true)
	p.set("/a/b", "", -1)
	p.remove("/a/b", -1)
	p.wantEvents("deleted /a/b")
	p.want(p.call(wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: "/a", Type: wire.WatcherChildren}).Err, wire.ErrOK, "remove")
	p.set("/a", "", -1)
	p.wantEvents("data /a")
	if c := w.tree.Counts(); c.Watches != 0 {
		t.Errorf("%d watches are left", c.Watches)
	}
}
