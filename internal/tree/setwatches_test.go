package tree

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// reconnect resumes the client's session on a new connection, as after a network failure.
func reconnect(p *peer) *peer {
	p.disconnect()
	return p.w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 10_000})
}

func TestSetWatchesReportsMissedChanges(t *testing.T) {
	for _, tt := range []struct {
		name   string
		path   string
		kind   int // 0 data, 1 exists, 2 children
		change func(*peer)
		now    []string
		later  []string // after /a is set and gets a child
	}{
		{"data, unchanged", "/a", 0, nil, nil, []string{"data /a"}},
		{"data, set", "/a", 0, func(p *peer) { p.set("/a", "", -1) }, []string{"data /a"}, nil},
		{"data, child created", "/a", 0, func(p *peer) { p.mk("/a/c", 0) }, nil, []string{"data /a"}},
		{"data, deleted", "/a/b", 0, func(p *peer) { p.remove("/a/b", -1) }, []string{"deleted /a/b"}, nil},
		{"data, created again", "/a/b", 0, func(p *peer) { p.remove("/a/b", -1); p.mk("/a/b", 0) }, []string{"data /a/b"}, nil},
		{"exists, still missing", "/n", 1, nil, nil, []string{"created /n"}},
		{"exists, created", "/n", 1, func(p *peer) { p.mk("/n", 0) }, []string{"created /n"}, nil},
		// The server cannot tell the difference, so the client must request a data watch.
		{"exists, existed before", "/a", 1, nil, []string{"created /a"}, nil},
		{"children, unchanged", "/a", 2, nil, nil, []string{"children /a"}},
		{"children, data set", "/a", 2, func(p *peer) { p.set("/a", "", -1) }, nil, []string{"children /a"}},
		{"children, child created", "/a", 2, func(p *peer) { p.mk("/a/c", 0) }, []string{"children /a"}, nil},
		{"children, child deleted", "/a", 2, func(p *peer) { p.remove("/a/b", -1) }, []string{"children /a"}, nil},
		{"children, deleted", "/a/b", 2, func(p *peer) { p.remove("/a/b", -1) }, []string{"deleted /a/b"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p, actor := newWatchHarness(t, Config{})
			zxid := w.tree.Zxid()
			p = reconnect(p)
			if tt.change != nil {
				tt.change(actor)
			}
			req := &wire.SetWatches{RelativeZxid: zxid, DataWatches: []string{}, ExistWatches: []string{}, ChildWatches: []string{}}
			*[]*[]string{&req.DataWatches, &req.ExistWatches, &req.ChildWatches}[tt.kind] = []string{tt.path}
			p.xid = wire.XidSetWatches - 1
			if r := p.call(wire.OpSetWatches, req); r.Err != wire.ErrOK || r.Xid != wire.XidSetWatches || len(r.body) != 0 {
				t.Errorf("answer %+v", r)
			}
			p.wantEvents(tt.now...)
			actor.set("/a", "", -1)
			actor.create("/a/later", 0)
			actor.create("/n", 0)
			p.wantEvents(tt.later...)
		})
	}
}

func TestSetWatches2RestoresPersistentWatches(t *testing.T) {
	w, p, actor := newWatchHarness(t, Config{})
	p = reconnect(p)
	r := p.call(wire.OpSetWatches2, &wire.SetWatches2{
		RelativeZxid: w.tree.Zxid(), DataWatches: []string{"/a"}, ExistWatches: []string{}, ChildWatches: []string{},
		PersistentWatches: []string{"/p"}, PersistentRecursiveWatches: []string{"/a"},
	})
	p.want(r.Err, wire.ErrOK, "setWatches2")
	actor.mk("/p", 0)
	actor.mk("/p/c", 0)
	actor.set("/a", "", -1)
	actor.set("/a", "", -1)
	actor.set("/a/b", "", -1)
	p.wantEvents("created /p", "children /p", "data /a", "data /a", "data /a/b")
}

func TestSetWatchesWithNullListIsRefused(t *testing.T) {
	_, p, _ := newWatchHarness(t, Config{})
	p.want(p.call(wire.OpSetWatches, &wire.SetWatches{}).Err, wire.ErrMarshalling, "null lists")
	p.want(p.call(wire.OpSetWatches2, &wire.SetWatches2{DataWatches: []string{"/n"}}).Err, wire.ErrMarshalling, "null lists")
	// The lists before the missing one were restored.
	p.wantEvents("deleted /n")
	p.want(p.call(wire.OpSetWatches, nil).Err, wire.ErrMarshalling, "no body")
	p.wantEvents()
}

func TestSetWatchesEventsNeedRead(t *testing.T) {
	_, p, actor := newWatchHarness(t, Config{})
	actor.auth("digest", "ann:secret")
	actor.mkACL("/private", wire.ACL{Perms: 31, Scheme: "auth"})
	p.call(wire.OpSetWatches, &wire.SetWatches{
		DataWatches: []string{"/private", "/gone"}, ExistWatches: []string{"/private"}, ChildWatches: []string{"/private"},
	})
	p.wantEvents("deleted /gone")
}

// TestSetWatchesHideWhetherClosedNodeChanged checks that the answer to setWatches does not reveal
// changes of a node, or of its list of children, to a client without READ.
func TestSetWatchesHideWhetherClosedNodeChanged(t *testing.T) {
	_, p, actor := newWatchHarness(t, Config{})
	actor.auth("digest", "ann:secret")
	actor.mkACL("/private", wire.ACL{Perms: wire.PermAll, Scheme: "auth"})
	for _, seen := range []int64{0, math.MaxInt64} {
		p.call(wire.OpSetWatches, &wire.SetWatches{
			RelativeZxid: seen, DataWatches: []string{"/private"},
			ExistWatches: []string{}, ChildWatches: []string{"/private"},
		})
		for _, typ := range []wire.WatcherType{wire.WatcherData, wire.WatcherChildren} {
			r := p.call(wire.OpCheckWatches, &wire.CheckWatchesRequest{Path: "/private", Type: typ})
			p.want(r.Err, wire.ErrOK, "watch after transaction "+strconv.FormatInt(seen, 10))
		}
	}
	p.wantEvents()
}

// TestHiddenChangesLeaveOneShotWatches checks that a client without READ on a node cannot learn
// from its own watches that the node, or its list of children, changes.
func TestHiddenChangesLeaveOneShotWatches(t *testing.T) {
	w, p, actor := newWatchHarness(t, Config{})
	actor.auth("digest", "ann:secret")
	closed := wire.ACL{Perms: wire.PermAll, Scheme: "auth"}
	actor.mkACL("/private", closed)
	p.call(wire.OpSetWatches, &wire.SetWatches{
		RelativeZxid: math.MaxInt64, DataWatches: []string{"/private"},
		ExistWatches: []string{}, ChildWatches: []string{"/private"},
	})
	p.exists("/later", true)
	before := w.tree.Counts()
	for range 2 {
		actor.set("/private", "y", -1)
		actor.mk("/private/child", 0)
		actor.remove("/private/child", -1)
		actor.remove("/private", -1)
		actor.mkACL("/private", closed)
		actor.mkACL("/later", closed)
		actor.remove("/later", -1)
	}
	p.wantEvents()
	after := w.tree.Counts()
	if after.Watches != before.Watches || after.WatchedPaths != before.WatchedPaths {
		t.Errorf("%+v after the changes, want the watches of %+v", after, before)
	}
	check := func(path string, typ wire.WatcherType, want wire.ErrCode) {
		t.Helper()
		r := p.call(wire.OpCheckWatches, &wire.CheckWatchesRequest{Path: path, Type: typ})
		p.want(r.Err, want, fmt.Sprint("watch of type ", typ, " on ", path))
	}
	for _, typ := range []wire.WatcherType{wire.WatcherData, wire.WatcherChildren, wire.WatcherAny} {
		check("/private", typ, wire.ErrOK)
	}
	check("/later", wire.WatcherData, wire.ErrOK)
	// A watch that the client sets later, when it may read the node, fires.
	actor.mk("/later", 0)
	p.exists("/later", true)
	actor.set("/later", "y", -1)
	p.wantEvents("data /later")
	check("/later", wire.WatcherData, wire.ErrNoWatcher)
	remove := &wire.RemoveWatchesRequest{Path: "/private", Type: wire.WatcherAny}
	r := p.call(wire.OpRemoveWatches, remove)
	p.want(r.Err, wire.ErrOK, "remove the watches")
	check("/private", wire.WatcherAny, wire.ErrNoWatcher)
	if n := w.tree.Counts().WatchedPaths; n != before.WatchedPaths-2 {
		t.Errorf("%d watched paths, want %d", n, before.WatchedPaths-2)
	}
}
