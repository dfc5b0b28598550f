package session

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// watching connects and sets one watch of each kind.
func watching(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil)
	r.connect(7)
	for i, s := range []struct {
		op   Op
		code wire.ErrCode
		body wire.Record
	}{
		{Op{Code: wire.OpGetData, Path: "/data", Watch: true}, 0, &wire.GetDataResponse{}},
		{Op{Code: wire.OpExists, Path: "/there", Watch: true}, 0, &wire.ExistsResponse{}},
		{Op{Code: wire.OpExists, Path: "/missing", Watch: true}, wire.ErrNoNode, nil},
		{Op{Code: wire.OpGetChildren2, Path: "/kids", Watch: true}, 0, &wire.GetChildren2Response{Children: []string{}}},
		{Op{Code: wire.OpGetData, Path: "/nothing", Watch: true}, wire.ErrNoNode, nil},
		{Op{Code: wire.OpGetData, Path: "/plain"}, 0, &wire.GetDataResponse{}},
		{Op{Code: wire.OpExists, Path: "/denied", Watch: true}, wire.ErrNoAuth, nil},
	} {
		r.submit(s.op)
		r.requests()
		r.reply(int32(i+1), 50, s.code, s.body)
	}
	r.take()
	return r
}

// reconnected ends the connection and returns the first frames of the next one.
func (r *rig) reconnected() []sentFrame {
	r.t.Helper()
	r.core.Lost(r.gen, ErrTimeout, r.now)
	return r.connect(7)
}

func decodeSetWatches(t *testing.T, f sentFrame) wire.SetWatches2 {
	t.Helper()
	var w wire.SetWatches2
	rd := jute.NewReader(f.body)
	switch f.Op {
	case wire.OpSetWatches:
		var old wire.SetWatches
		old.Decode(rd)
		w = wire.SetWatches2{RelativeZxid: old.RelativeZxid, DataWatches: old.DataWatches, ExistWatches: old.ExistWatches, ChildWatches: old.ChildWatches}
	case wire.OpSetWatches2:
		w.Decode(rd)
	default:
		t.Fatalf("%v instead of setWatches", f.Op)
	}
	if f.Xid != wire.XidSetWatches {
		t.Fatalf("xid %d", f.Xid)
	}
	return w
}

func TestWatchesAreSetAgainBeforeQueuedCalls(t *testing.T) {
	r := watching(t)
	r.core.Lost(r.gen, ErrTimeout, r.now)
	r.submit(getA)
	reqs := r.connect(7)
	if len(reqs) != 2 || reqs[1].Op != wire.OpGetData {
		t.Fatalf("%+v", reqs)
	}
	w := decodeSetWatches(t, reqs[0])
	// The exists watch that found a znode is a data watch.
	if w.RelativeZxid != 50 || !slices.Equal(w.DataWatches, []string{"/data", "/there"}) ||
		!slices.Equal(w.ExistWatches, []string{"/missing"}) || !slices.Equal(w.ChildWatches, []string{"/kids"}) {
		t.Fatalf("%+v", w)
	}
	r.event(wire.EventNodeDataChanged, "/data", -1)
	r.reply(wire.XidSetWatches, 60, 0, nil)
	r.reply(reqs[1].Xid, 60, wire.ErrNoNode, nil)
	if r.core.Live() == 0 {
		t.Fatalf("lost: %v", r.core.Failures())
	}
	if w := decodeSetWatches(t, r.reconnected()[0]); !slices.Equal(w.DataWatches, []string{"/there"}) {
		t.Fatalf("%+v", w)
	}
}

func TestEventsConsumeWatches(t *testing.T) {
	for _, row := range []struct {
		event wire.EventType
		path  string
		left  int
	}{
		{wire.EventNodeDataChanged, "/data", 3},
		{wire.EventNodeDeleted, "/data", 3},
		{wire.EventDataWatchRemoved, "/there", 3},
		{wire.EventNodeCreated, "/missing", 3},
		{wire.EventNodeDeleted, "/kids", 3},
		{wire.EventNodeChildrenChanged, "/kids", 3},
		{wire.EventChildWatchRemoved, "/kids", 3},
		{wire.EventNodeChildrenChanged, "/data", 4}, // not the watched kind
		{wire.EventNodeDataChanged, "/kids", 4},
		{wire.EventNodeDeleted, "/unknown", 4},
	} {
		r := watching(t)
		r.event(row.event, row.path, -1)
		w := decodeSetWatches(t, r.reconnected()[0])
		if n := len(w.DataWatches) + len(w.ExistWatches) + len(w.ChildWatches); n != row.left {
			t.Errorf("event %d on %s leaves %d watches, want %d", row.event, row.path, n, row.left)
		}
	}
}

func TestPersistentWatchesStay(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	for i, m := range []wire.AddWatchMode{wire.AddWatchPersistent, wire.AddWatchPersistentRecursive} {
		r.submit(Op{Code: wire.OpAddWatch, Path: fmt.Sprintf("/w%d", i), WatchMode: m})
		r.requests()
		r.reply(int32(i+1), 5, 0, &wire.ErrorResponse{})
	}
	r.event(wire.EventNodeCreated, "/w0", -1)
	r.event(wire.EventNodeDeleted, "/w1", -1)
	reqs := r.reconnected()
	w := decodeSetWatches(t, reqs[0])
	if reqs[0].Op != wire.OpSetWatches2 || !slices.Equal(w.PersistentWatches, []string{"/w0"}) ||
		!slices.Equal(w.PersistentRecursiveWatches, []string{"/w1"}) {
		t.Fatalf("%+v", w)
	}
	r.event(wire.EventPersistentWatchRemoved, "/w1", -1)
	r.reply(wire.XidSetWatches, 6, 0, nil)
	w = decodeSetWatches(t, r.reconnected()[0])
	if len(w.PersistentRecursiveWatches) != 0 || len(w.PersistentWatches) != 1 {
		t.Fatalf("%+v", w)
	}
}

func TestRemoveWatchesOfKindUnknownToServer(t *testing.T) {
	for kind, want := range map[wire.WatcherType]wire.ErrCode{
		wire.WatcherPersistent: wire.ErrUnimplemented, wire.WatcherPersistentRecursive: wire.ErrUnimplemented, wire.WatcherData: wire.ErrMarshalling,
	} {
		r := newRig(t, nil)
		r.connect(7)
		call := r.submit(Op{Code: wire.OpRemoveWatches, Path: "/p", Type: kind})
		r.reply(r.requests()[0].Xid, 0, wire.ErrMarshalling, nil)
		if res := call.Result; res.Code != want || res.Applied != No {
			t.Errorf("type %d: %v, applied %v, want %v", kind, res.Code, res.Applied, want)
		}
	}
}

func TestRemoveWatchesReportsEachKind(t *testing.T) {
	r := watching(t)
	call := r.submit(Op{Code: wire.OpRemoveWatches, Path: "/data", Type: wire.WatcherAny})
	xid := r.requests()[0].Xid
	r.reply(xid, 51, 0, nil)
	n := r.take()
	if len(n) != 2 || n[0].Event.Type != wire.EventDataWatchRemoved || n[1].Call != call {
		t.Fatalf("%+v", n)
	}
	call = r.submit(Op{Code: wire.OpRemoveWatches, Path: "/kids", Type: wire.WatcherChildren})
	r.requests()
	r.reply(xid+1, 51, wire.ErrNoWatcher, nil)
	if n := r.take(); len(n) != 1 || call.Result.Code != wire.ErrNoWatcher {
		t.Fatalf("%+v", n)
	}
}

func TestKindsOfRemoval(t *testing.T) {
	all := dataWatch | existWatch | childWatch | persistentWatch | recursiveWatch
	for typ, want := range map[wire.WatcherType]watchKinds{
		wire.WatcherChildren: childWatch, wire.WatcherData: dataWatch | existWatch, wire.WatcherAny: all,
		wire.WatcherPersistent: persistentWatch, wire.WatcherPersistentRecursive: recursiveWatch,
	} {
		var w watches
		w.add("/a", all)
		if had := w.remove("/a", removedKinds(typ)); had != want || w.paths["/a"] != all&^want {
			t.Errorf("type %d removed %b and left %b", typ, had, w.paths["/a"])
		}
	}
}

func TestManyWatchesAreSetInSmallFrames(t *testing.T) {
	const all = dataWatch | existWatch | childWatch | persistentWatch | recursiveWatch
	for _, row := range []struct {
		n, length int
		kinds     watchKinds
		limit     int // the expected maximum of a frame
		config    int
		frames    int
	}{
		{5000, 87, dataWatch, setWatchesBytes, 1 << 20, 4},
		{1000, 105, existWatch, 64 << 10, 64 << 10, 2},
		{1000, 105, all, 64 << 10, 64 << 10, 9},
		{100, 1000, all, 1050, 1050, 500}, // each watch in a frame of its own
	} {
		var w watches
		var want, got []string
		for i := range row.n {
			path := fmt.Sprintf("/%s/%05d", strings.Repeat("x", row.length-7), i)
			w.add(path, row.kinds)
			for range bits.OnesCount8(uint8(row.kinds)) {
				want = append(want, path)
			}
		}
		b, frames := w.frames(nil, 9, row.config)
		for range frames {
			size := int(jute.NewReader(b).Int32())
			if size > row.limit {
				t.Fatalf("%+v: a frame of %d bytes", row, size)
			}
			rd := jute.NewReader(b[4 : 4+size])
			var f sentFrame
			f.Decode(rd)
			f.body = b[4+headerSize : 4+size]
			set := decodeSetWatches(t, f)
			got = slices.Concat(got, set.DataWatches, set.ExistWatches, set.ChildWatches, set.PersistentWatches, set.PersistentRecursiveWatches)
			b = b[4+size:]
		}
		slices.Sort(got)
		if len(b) != 0 || frames != row.frames || !slices.Equal(got, want) {
			t.Errorf("%+v: %d frames, %d bytes over, %d of %d watches", row, frames, len(b), len(got), len(want))
		}
	}
}

// Each connection would end at a request that the server refuses.
func TestWatchThatCannotBeSetAgainIsRefused(t *testing.T) {
	const limit = 200
	for _, op := range []Op{
		{Code: wire.OpExists, Watch: true}, {Code: wire.OpGetData, Watch: true}, {Code: wire.OpGetChildren2, Watch: true},
		{Code: wire.OpAddWatch, WatchMode: wire.AddWatchPersistentRecursive},
	} {
		r := newRig(t, func(c *Config) { c.MaxRequest = limit })
		r.connect(7)
		op.Path = "/" + strings.Repeat("x", limit-setWatchesOverhead-4) // one byte too long
		r.wantFail(r.submit(op), ErrTooLarge, No)
		op.Path = op.Path[1:]
		r.submit(op)
		for _, f := range r.requests() {
			r.reply(f.Xid, 5, 0, replyTo(f.Op))
		}
		for _, f := range r.reconnected() {
			if n := headerSize + len(f.body); n > limit {
				t.Errorf("%v: a frame of %d bytes", op.Code, n)
			}
		}
	}
}

// replyTo returns the body of an empty answer to a request that sets a watch.
func replyTo(code wire.OpCode) wire.Record {
	switch code {
	case wire.OpExists:
		return &wire.ExistsResponse{}
	case wire.OpGetData:
		return &wire.GetDataResponse{}
	case wire.OpGetChildren2:
		return &wire.GetChildren2Response{Children: []string{}}
	}
	return &wire.ErrorResponse{}
}

func TestUnansweredWatchesAreKept(t *testing.T) {
	r := watching(t)
	r.reconnected()
	if w := decodeSetWatches(t, r.reconnected()[0]); len(w.DataWatches) != 2 {
		t.Fatalf("%+v", w)
	}
	r.reply(wire.XidSetWatches, 50, wire.ErrUnimplemented, nil)
	r.wantLost(ErrRefused)
}

func TestWatchesEndWithTheSession(t *testing.T) {
	r := watching(t)
	r.core.Lost(r.gen, ErrTimeout, r.now)
	r.dial()
	r.greet(wire.ConnectResponse{Password: make([]byte, 16)})
	if reqs := r.connect(8); len(reqs) != 0 {
		t.Fatalf("%+v", reqs)
	}
}
