package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// setOps returns a multi that changes a node n times.
func setOps(path string, n int) *wire.MultiRequest {
	m := new(wire.MultiRequest)
	for range n {
		m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path, Version: -1}})
	}
	return m
}

// TestEventsOfMultiAreBounded checks that a multi is refused as a whole if its events would need
// more memory than permitted, for each kind of watch.
func TestEventsOfMultiAreBounded(t *testing.T) {
	const watchers, room = 10, multiFanOut * 1000 / (eventCost + len("/a/b"))
	for _, tt := range []struct {
		name  string
		watch func(p *peer) wire.ErrCode
		most  int // permitted changes of /a/b in a multi
	}{
		{"persistent", func(p *peer) wire.ErrCode { return p.addWatch("/a/b", wire.AddWatchPersistent) }, room / watchers},
		{"recursive", func(p *peer) wire.ErrCode { return p.addWatch("/", wire.AddWatchPersistentRecursive) }, room / watchers},
		{"one-shot", func(p *peer) wire.ErrCode { _, _, err := p.get("/a/b", true); return err }, 1000},
		{"on another node", func(p *peer) wire.ErrCode { return p.addWatch("/c", wire.AddWatchPersistentRecursive) }, 1000},
	} {
		w := newHarness(t, Config{MaxReply: 1000})
		writer := w.dial()
		writer.mk("/a", 0)
		writer.mk("/a/b", 0)
		writer.mk("/c", 0)
		for range watchers {
			p := w.dial()
			p.want(tt.watch(p), wire.ErrOK, tt.name)
		}
		for _, n := range []int{tt.most, tt.most + 1} {
			_, before, _ := w.tree.Get("/a/b")
			writer.want(writer.ask(wire.OpMulti, setOps("/a/b", n), new(wire.MultiResponse)), wire.ErrOK, "multi")
			_, after, _ := w.tree.Get("/a/b")
			done := after.Version != before.Version
			if want := n <= tt.most || tt.most == 1000; done != want {
				t.Errorf("%s: %d changes: done is %v", tt.name, n, done)
			}
		}
		w.check()
	}
}

// TestPermissionChecksOfEventsAreBounded: an event counts more if its permission check takes
// longer, because a client has many identities or a recursive watch checks many lists.
func TestPermissionChecksOfEventsAreBounded(t *testing.T) {
	const watchers, deep = 20, "/a/b/c/d/e/f/g/h"
	for _, tt := range []struct {
		name       string
		path       string
		mode       wire.AddWatchMode
		identities int // beyond the address
		entries    int // of each list, in addition to that for anyone
		weight     int
	}{
		{"one", "/a", wire.AddWatchPersistent, 0, 0, 1},
		{"many identities", "/a", wire.AddWatchPersistent, 4*identitiesPerEvent - 1, 0, 5},
		{"deep", deep, wire.AddWatchPersistent, 0, 0, 1},
		{"deep, recursive, long lists", deep, wire.AddWatchPersistentRecursive, 0, 200, 5 + (1+7*6)/listsPerEvent},
		{"deep, recursive", deep, wire.AddWatchPersistentRecursive, 0, 0, 1 + strings.Count(deep, "/")/listsPerEvent},
		{"deep, recursive, many identities", deep, wire.AddWatchPersistentRecursive, 4*identitiesPerEvent - 1, 0, 5 * (1 + strings.Count(deep, "/")/listsPerEvent)},
	} {
		w := newHarness(t, Config{})
		writer := w.dial()
		for i := 1; i < len(deep); i += 2 {
			writer.want(writer.mkACL(deep[:i+1], append(manyACLs(tt.entries), openACL()...)...), wire.ErrOK, "create")
		}
		for range watchers {
			p := w.dial()
			p.manyIdentities(tt.identities)
			p.want(p.addWatch(tt.path, tt.mode), wire.ErrOK, tt.name)
		}
		most := maxEvents / watchers / tt.weight // without the inspected watches
		for _, n := range []int{most * 9 / 10, most + 1} {
			_, before, _ := w.tree.Get(tt.path)
			writer.want(writer.ask(wire.OpMulti, setOps(tt.path, n), new(wire.MultiResponse)), wire.ErrOK, "multi")
			_, after, _ := w.tree.Get(tt.path)
			if done := after.Version != before.Version; done != (n <= most) {
				t.Errorf("%s: %d changes: done is %v", tt.name, n, done)
			}
		}
	}
}

// manyIdentities authenticates as n users.
func (p *peer) manyIdentities(n int) {
	for i := range n {
		p.auth("digest", fmt.Sprint("u", i, ":x"))
	}
}

// TestLookupsInLongListsCountMore checks that the server closes the watchers whose permission
// checks of one change take too long.
func TestLookupsInLongListsCountMore(t *testing.T) {
	const entries, weight, identities, names, watchers = 1000, 8, 50, 100, 20
	w := newHarness(t, Config{})
	writer, path := w.dial(), ""
	for i := range names {
		path += "/d"
		list := append(manyACLs(entries), wire.ACL{Perms: wire.PermAll, Scheme: "digest", ID: fmt.Sprint(i%2, ":x")})
		writer.want(writer.mkACL(path, append(list, openACL()...)...), wire.ErrOK, "create")
	}
	var all []*peer
	for range watchers {
		p := w.dial()
		p.manyIdentities(identities - 1) // and the address
		p.want(p.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		all = append(all, p)
	}
	writer.send(7, wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1})
	closed := 0
	for _, p := range all {
		if p.closed {
			closed++
		}
	}
	if want := watchers - maxLookups/(identities*(weight*names+1)); closed != want {
		t.Errorf("%d watchers are closed, want %d", closed, want)
	}
}

// TestPermissionsAreCheckedOncePerChange checks that a connection with recursive watches on many
// ancestors is checked once.
func TestPermissionsAreCheckedOncePerChange(t *testing.T) {
	const names = 100
	w := newHarness(t, Config{})
	p, path := w.dial(), ""
	p.manyIdentities(maxIdentities - 1)
	for range names {
		path = p.mk(path+"/d", 0)
		p.want(p.addWatch(path, wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
	}
	p.takeEvents()
	p.want(p.set(path, "y", -1), wire.ErrOK, "set")
	if most := 4 * names; len(p.events) != 1 || w.tree.steps > most {
		t.Errorf("%d events, %d steps, want 1 and at most %d", len(p.events), w.tree.steps, most)
	}
}

// TestOneShotEventsOfMultiAreBounded checks that a multi that changes many nodes is refused if
// one-shot watches on them cause too many events.
func TestOneShotEventsOfMultiAreBounded(t *testing.T) {
	const watchers = 50
	const nodes = maxEvents / watchers * 21 / 20
	for name, tt := range map[string]struct {
		watch func(p *peer, path string)
		ops   func(path string) []wire.MultiOp
	}{
		"data":   {func(p *peer, path string) { p.get(path, true) }, func(path string) []wire.MultiOp { return setOps(path, 1).Ops }},
		"exists": {func(p *peer, path string) { p.exists(path+"x", true) }, func(path string) []wire.MultiOp { return []wire.MultiOp{opCreate(path+"x", 0)} }},
		"list":   {func(p *peer, path string) { p.children(path, true) }, func(path string) []wire.MultiOp { return []wire.MultiOp{opCreate(path+"/x", 0)} }},
		"list of a changed node": {func(p *peer, path string) { p.children(path, true) }, func(path string) []wire.MultiOp {
			return append(setOps(path, 1).Ops, opDelete(path, -1))
		}},
	} {
		w := newHarness(t, Config{MaxWatches: 4 * watchers * nodes})
		writer := w.dial()
		var ops []wire.MultiOp
		for i := range nodes {
			ops = append(ops, tt.ops(writer.mk(fmt.Sprint("/", i), 0))...)
		}
		for range watchers {
			p := w.dial()
			for i := range nodes {
				tt.watch(p, fmt.Sprint("/", i))
			}
		}
		if got := codes(writer.multi(ops...)); !slices.Contains(got, wire.ErrQuotaExceeded) {
			t.Errorf("%s: a multi with %d events is not refused", name, watchers*nodes)
		}
		if got := codes(writer.multi(ops[:len(ops)*9/10]...)); slices.Min(got) != wire.ErrOK {
			t.Errorf("%s: a multi with %d events is refused", name, watchers*nodes*9/10)
		}
	}
}

// TestPathsInEventsOfMultiAreBounded checks that the events of a multi contain at most 8 MiB of
// paths.
func TestPathsInEventsOfMultiAreBounded(t *testing.T) {
	const watchers, most = 50, 8 << 20
	for _, size := range []int{100, 127, 128, 500, 1021, 1024, 5000, 100_000} {
		w := newHarness(t, Config{})
		p := w.dial()
		path := "/" + strings.Repeat("v", size-1)
		p.mk(path, 0)
		for range watchers {
			q := w.dial()
			q.want(q.addWatch(path, wire.AddWatchPersistent), wire.ErrOK, "addWatch")
		}
		n := most/(watchers*size) + 1
		if _, err := w.tree.checkEventLimits(slices.Repeat([]txn{{path: path}}, n)); err != wire.ErrQuotaExceeded {
			t.Errorf("%d events with paths of %d bytes: %s", n*watchers, size, err.Name())
		}
		if _, err := w.tree.checkEventLimits(slices.Repeat([]txn{{path: path}}, max(n/4, 1))); err != wire.ErrOK {
			t.Errorf("%d events with paths of %d bytes: %s", n/4*watchers, size, err.Name())
		}
	}
}

// TestMultiCountsInspectedWatches checks that a multi is refused if its changes inspect too many
// watches, even if none of them fires.
func TestMultiCountsInspectedWatches(t *testing.T) {
	for watchers, want := range map[int]wire.ErrCode{100: wire.ErrOK, 1000: wire.ErrQuotaExceeded} {
		w := newHarness(t, Config{})
		p := w.dial()
		p.mk("/a", 0)
		for range watchers {
			_, err := w.dial().children("/a", true)
			p.want(err, wire.ErrOK, "getChildren")
		}
		if _, err := w.tree.checkEventLimits(slices.Repeat([]txn{{op: wire.OpSetData, path: "/a"}}, maxOps)); err != want {
			t.Errorf("%d watches of the children: %s, want %s", watchers, err.Name(), want.Name())
		}
		p.want(p.addWatch("/a", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		var below []txn
		for i := range maxOps / 2 {
			below = append(below, txn{op: wire.OpSetData, path: fmt.Sprint("/a/", i, "/b")}, txn{op: wire.OpSetData, path: fmt.Sprint("/a/", i, "/c")})
		}
		if _, err := w.tree.checkEventLimits(below); err != want {
			t.Errorf("%d watches of an ancestor: %s, want %s", watchers, err.Name(), want.Name())
		}
	}
}

// TestFirstOperationBeyondEventLimitFails: creates and deletes also count for watches of the
// parent.
func TestFirstOperationBeyondEventLimitFails(t *testing.T) {
	w := newHarness(t, Config{MaxReply: 2000})
	p := w.dial()
	p.mk("/a", 0)
	for range 20 {
		q := w.dial()
		q.want(q.addWatch("/a", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
	}
	var ops []wire.MultiOp
	for i := range 3 {
		ops = append(ops, opCreate(fmt.Sprint("/a/", i), 0))
	}
	var resp wire.MultiResponse
	p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: ops}, &resp), wire.ErrOK, "multi")
	for i, r := range resp.Results {
		want := []wire.ErrCode{0, wire.ErrQuotaExceeded, wire.ErrRuntimeInconsistency}[i]
		if r.Err != want {
			t.Errorf("operation %d: %s, want %s", i, r.Err.Name(), want.Name())
		}
	}
	wantRefused(t, "replies", w.tree.Counters().RefusedReplies, 1)
	p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: ops[:1]}, &resp), wire.ErrOK, "a shorter multi")
	if _, _, ok := w.tree.Get("/a/0"); !ok {
		t.Error("a multi within the bounds was refused")
	}
}

// TestEventsOfSessionEndAreBounded: the end of a session is never refused. If a connection cannot
// get all events, the server closes it.
func TestEventsOfSessionEndAreBounded(t *testing.T) {
	const nodes, watchers = 40, 20
	for _, expire := range []bool{false, true} {
		w := newHarness(t, Config{MaxReply: 1000})
		owner := w.dial()
		for i := range nodes {
			owner.mk(fmt.Sprint("/e", i), wire.ModeEphemeral)
		}
		owner.want(owner.addWatch("/", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
		w.advance(9 * time.Second)
		var peers []*peer
		for range watchers {
			p := w.dial()
			p.want(p.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
			peers = append(peers, p)
		}
		if expire {
			w.advance(9 * time.Second)
			w.tick()
		} else {
			owner.send(1, wire.OpCloseSession, nil)
		}
		if got := w.tree.nodes.len(); got != 4 {
			t.Errorf("%d nodes are left, want 4", got)
		}
		cut := 0
		for _, p := range peers {
			if p.closed {
				cut++
			} else if len(p.events) != nodes {
				t.Errorf("a watcher that stayed got %d of %d events", len(p.events), nodes)
			}
		}
		if cut == 0 || !owner.closed || w.tree.watches.total != 0 && cut == watchers {
			t.Errorf("%d of %d are closed, %d watches are left", cut, watchers, w.tree.watches.total)
		}
		// A change below the limit closes no connection.
		p, q := w.dial(), w.dial()
		p.want(p.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		q.mk("/n", 0)
		p.wantEvents("created /n")
		w.check()
	}
}

// TestRemovedRecursiveWatchesAreForgotten checks that the first multi below a node whose watches
// were removed clears the mark of the node, so that later changes do not look for the watches.
func TestRemovedRecursiveWatchesAreForgotten(t *testing.T) {
	w := newHarness(t, Config{})
	p, watcher := w.dial(), w.dial()
	p.mk("/a", 0)
	p.mk("/a/b", 0)
	p.mk("/a/b/c", 0)
	for _, path := range []string{"/a", "/a/b"} {
		watcher.want(watcher.addWatch(path, wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
	}
	p.want(p.addWatch("/a", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
	watcher.disconnect()
	w.tree.checkEventLimits([]txn{{path: "/a/b/c/d"}})
	if !w.tree.nodes.get("/a").extraOrNew().recursiveWatch || w.tree.nodes.get("/a/b").extraOrNew().recursiveWatch {
		t.Error("a node has the mark of a removed recursive watch, or lacks that of an existing one")
	}
	w.check()
}
