package tree

import (
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

func TestReadsUseNoZxid(t *testing.T) {
	w := newHarness(t, Config{InitialZxid: 9 << 32})
	p := w.dial()
	p.mk("/a", wire.ModePersistent)
	zxid := int64(9<<32 + 2)
	for _, tt := range []struct {
		op  wire.OpCode
		rec wire.Record
	}{
		{wire.OpExists, &wire.ExistsRequest{Path: "/a"}},
		{wire.OpExists, &wire.ExistsRequest{Path: "/none"}},
		{wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true}},
		{wire.OpGetACL, &wire.GetACLRequest{Path: "/a"}},
		{wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/a"}},
		{wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/a"}},
		{wire.OpSync, &wire.SyncRequest{Path: "/a"}},
		{wire.OpPing, nil},
		{wire.OpMultiRead, &wire.MultiReadRequest{}},
		{wire.OpAddWatch, &wire.AddWatchRequest{Path: "/a"}},
		{wire.OpCheckWatches, &wire.CheckWatchesRequest{Path: "/a", Type: wire.WatcherAny}},
		{wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: "/a", Type: wire.WatcherAny}},
		{wire.OpSetWatches, &wire.SetWatches{DataWatches: []string{}, ExistWatches: []string{}, ChildWatches: []string{}}},
		{wire.OpGetEphemerals, &wire.GetEphemeralsRequest{}},
		{wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/"}},
		{wire.OpWhoAmI, nil},
	} {
		logged := len(w.logged)
		if r := p.call(tt.op, tt.rec); r.Zxid != zxid {
			t.Errorf("%s: zxid %#x in the header, want %#x", tt.op, r.Zxid, zxid)
		}
		if w.tree.Zxid() != zxid || len(w.logged) != logged {
			t.Errorf("%s made a transaction", tt.op)
		}
	}
}

func TestZxidOverflowsIntoTheEpoch(t *testing.T) {
	w := newHarness(t, Config{InitialZxid: 7<<32 | 0xfffffffd})
	p := w.dial()
	var last int64
	for i := range 5 {
		p.create("/a", wire.ModePersistent)
		if s, _ := p.exists("/a", false); s.Czxid <= 7<<32 {
			t.Errorf("czxid %#x", s.Czxid)
		}
		if w.tree.Zxid() <= last {
			t.Errorf("zxid %#x after %#x", w.tree.Zxid(), last)
		}
		if last = w.tree.Zxid(); last != 7<<32|0xfffffffd+int64(i)+2 {
			t.Errorf("write %d: zxid %#x", i, last)
		}
	}
	if last>>32 != 8 {
		t.Errorf("epoch %d, want 8", last>>32)
	}
	w.check()
}

// TestZxidsOfFailedWritesSurviveRestart: clients have seen these zxids.
func TestZxidsOfFailedWritesSurviveRestart(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for range 3 {
		p.remove("/none", -1)
	}
	w.check()
	if w.shadow.Zxid() != 4 {
		t.Errorf("zxid %d after the replay, want 4", w.shadow.Zxid())
	}
}

// TestReplayStartsAtZxidOfFirstRecord: a server derives its initial zxid from the clock, and then
// replays records of an earlier run with smaller zxids.
func TestReplayStartsAtZxidOfFirstRecord(t *testing.T) {
	w := newHarness(t, Config{InitialZxid: 100 << 32})
	w.dial().mk("/a", wire.ModePersistent)
	later := New(Config{InitialZxid: 200 << 32})
	for _, rec := range w.logged {
		if err := later.Replay(rec); err != nil {
			t.Fatal(err)
		}
	}
	if later.Zxid() != 100<<32+2 {
		t.Errorf("zxid %#x", later.Zxid())
	}
	again := New(Config{InitialZxid: 300 << 32})
	if err := restoreBytes(again, later.AppendSnapshot(nil)); err != nil || again.Zxid() != later.Zxid() {
		t.Errorf("restored zxid %#x, %v", again.Zxid(), err)
	}
}
