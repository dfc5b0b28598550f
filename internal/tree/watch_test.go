package tree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// newWatchHarness returns a harness with nodes /a and /a/b, a client that watches, and a client
// that makes changes.
func newWatchHarness(t *testing.T, cfg Config) (w *harness, watcher, actor *peer) {
	t.Helper()
	w = newHarness(t, cfg)
	watcher, actor = w.dial(), w.dial()
	actor.mk("/a", wire.ModePersistent)
	actor.mk("/a/b", wire.ModePersistent)
	return w, watcher, actor
}

// TestEventsOfEachWatch checks the events of each kind of watch, and their order.
func TestEventsOfEachWatch(t *testing.T) {
	exists := func(path string) func(*peer) { return func(p *peer) { p.exists(path, true) } }
	data := func(path string) func(*peer) { return func(p *peer) { p.get(path, true) } }
	children := func(path string) func(*peer) { return func(p *peer) { p.children(path, true) } }
	persistent := func(path string) func(*peer) {
		return func(p *peer) { p.addWatch(path, wire.AddWatchPersistent) }
	}
	recursive := func(path string) func(*peer) {
		return func(p *peer) { p.addWatch(path, wire.AddWatchPersistentRecursive) }
	}
	mk := func(path string) func(*peer) { return func(p *peer) { p.mk(path, wire.ModePersistent) } }
	set := func(path string) func(*peer) { return func(p *peer) { p.set(path, "y", -1) } }
	del := func(path string) func(*peer) { return func(p *peer) { p.remove(path, -1) } }
	type steps []func(*peer)
	for _, tt := range []struct {
		name    string
		watches steps
		acts    steps
		want    []string
	}{
		{"exists, created", steps{exists("/n")}, steps{mk("/n"), set("/n"), del("/n")}, []string{"created /n"}},
		{"exists, data set", steps{exists("/a")}, steps{set("/a"), set("/a")}, []string{"data /a"}},
		{"exists, deleted", steps{exists("/a/b")}, steps{del("/a/b"), mk("/a/b")}, []string{"deleted /a/b"}},
		{"exists, children", steps{exists("/a")}, steps{mk("/a/c"), del("/a/c")}, nil},
		{"data, set", steps{data("/a")}, steps{mk("/a/c"), set("/a"), set("/a")}, []string{"data /a"}},
		{"data, deleted", steps{data("/a/b")}, steps{del("/a/b")}, []string{"deleted /a/b"}},
		{"data on a missing node sets none", steps{data("/n")}, steps{mk("/n")}, nil},
		{"children on a missing node sets none", steps{children("/n")}, steps{mk("/n"), mk("/n/c")}, nil},
		{"children, created", steps{children("/a")}, steps{set("/a"), set("/a/b"), mk("/a/c"), del("/a/c")}, []string{"children /a"}},
		{"children, deleted", steps{children("/a")}, steps{del("/a/b")}, []string{"children /a"}},
		{"children, itself deleted", steps{children("/a/b")}, steps{del("/a/b")}, []string{"deleted /a/b"}},
		{"children of the root", steps{children("/")}, steps{mk("/n")}, []string{"children /"}},
		{"not grandchildren", steps{children("/")}, steps{mk("/a/c")}, nil},
		{"one event for three watches", steps{exists("/a/b"), data("/a/b"), children("/a/b")}, steps{del("/a/b")}, []string{"deleted /a/b"}},
		{"exists and data are one watch", steps{exists("/a"), data("/a")}, steps{set("/a"), set("/a")}, []string{"data /a"}},
		{"node before parent", steps{exists("/a/b"), children("/a")}, steps{del("/a/b")}, []string{"deleted /a/b", "children /a"}},
		{"created before parent", steps{children("/a"), exists("/a/c")}, steps{mk("/a/c")}, []string{"created /a/c", "children /a"}},
		{"persistent", steps{persistent("/a")}, steps{set("/a"), set("/a"), mk("/a/c"), del("/a/c")},
			[]string{"data /a", "data /a", "children /a", "children /a"}},
		{"persistent survives deletion", steps{persistent("/n")}, steps{mk("/n"), del("/n"), mk("/n")},
			[]string{"created /n", "deleted /n", "created /n"}},
		{"persistent is not recursive", steps{persistent("/a")}, steps{set("/a/b"), mk("/a/b/c")}, nil},
		{"recursive", steps{recursive("/a")}, steps{set("/a"), mk("/a/c"), mk("/a/c/d"), set("/a/b"), del("/a/b"), mk("/n")},
			[]string{"data /a", "created /a/c", "created /a/c/d", "data /a/b", "deleted /a/b"}},
		{"recursive on a missing node", steps{recursive("/n")}, steps{mk("/n"), mk("/n/m"), mk("/nn")}, []string{"created /n", "created /n/m"}},
		{"recursive at the root", steps{recursive("/")}, steps{set("/"), mk("/n"), mk("/n/m")}, []string{"data /", "created /n", "created /n/m"}},
		{"recursive and children", steps{recursive("/a"), children("/a")}, steps{mk("/a/c"), mk("/a/d")},
			[]string{"created /a/c", "children /a", "created /a/d"}},
		{"recursive twice up the path", steps{recursive("/"), recursive("/a"), exists("/a/b")}, steps{set("/a/b"), del("/a/b")},
			[]string{"data /a/b", "deleted /a/b"}},
		{"persistent and one-shot", steps{persistent("/a"), exists("/a"), children("/a")}, steps{set("/a"), set("/a"), mk("/a/c"), mk("/a/d")},
			[]string{"data /a", "data /a", "children /a", "children /a"}},
		{"failed changes are silent", steps{exists("/a"), children("/a"), exists("/n")}, steps{
			func(p *peer) { p.create("/a", 0) }, func(p *peer) { p.set("/a", "", 9) }, func(p *peer) { p.remove("/a", -1) },
			func(p *peer) { p.create("/n/m", 0) },
		}, nil},
		{"ACL changes are silent", steps{exists("/a"), persistent("/a")}, steps{func(p *peer) {
			p.call(wire.OpSetACL, &wire.SetACLRequest{Path: "/a", ACL: openACL(), Version: -1})
		}}, nil},
		{"the empty path is not the root", steps{exists(""), children("")}, steps{set("/"), mk("/n")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, self := range []bool{false, true} {
				w, watcher, actor := newWatchHarness(t, Config{})
				if self {
					actor = watcher // a client also gets events of its own changes
				}
				for _, f := range tt.watches {
					f(watcher)
				}
				for _, f := range tt.acts {
					f(actor)
				}
				if got := watcher.takeEvents(); !slices.Equal(got, tt.want) {
					t.Errorf("self %v: events %q, want %q", self, got, tt.want)
				}
				w.check()
			}
		})
	}
}

// TestMultiFiresEventsInOrder checks that the events precede the answer, in the order of the
// operations.
func TestMultiFiresEventsInOrder(t *testing.T) {
	_, watcher, actor := newWatchHarness(t, Config{})
	watcher.children("/a", true)
	watcher.exists("/a/b", true)
	watcher.exists("/a/c", true)
	actor.exists("/a/c", true)
	actor.multi(opCreate("/a/c", wire.ModePersistent), opSet("/a/b", -1), opDelete("/a/b", -1))
	watcher.wantEvents("created /a/c", "children /a", "data /a/b")
	actor.wantEvents("created /a/c")
}

// TestEventsNameTheirTransaction checks that each event has the zxid of its transaction, and that
// an event of setWatches has none.
func TestEventsNameTheirTransaction(t *testing.T) {
	w, watcher, actor := newWatchHarness(t, Config{})
	same := func(what string, zxid int64, n int) {
		t.Helper()
		if len(watcher.zxids) != n || slices.ContainsFunc(watcher.zxids, func(z int64) bool { return z != zxid }) {
			t.Errorf("%s: events of %d, want %d of %d", what, watcher.zxids, n, zxid)
		}
		watcher.takeEvents()
	}
	watcher.addWatch("/", wire.AddWatchPersistentRecursive)
	watcher.children("/a", true)
	actor.multi(opCreate("/a/c", wire.ModePersistent), opSet("/a/b", -1), opDelete("/a/c", -1))
	same("multi", w.tree.Zxid(), 4)
	actor.mk("/a/e", wire.ModeEphemeral)
	same("create", w.tree.Zxid(), 1)
	actor.remove("/missing", -1)
	actor.call(wire.OpCloseSession, nil)
	same("closeSession", w.tree.Zxid(), 1)
	watcher.call(wire.OpSetWatches, &wire.SetWatches{DataWatches: []string{"/a/e", "/a"}, ExistWatches: []string{"/a"}, ChildWatches: []string{"/a"}})
	same("setWatches", -1, 4)
}

func TestDisconnectRemovesWatches(t *testing.T) {
	w, watcher, actor := newWatchHarness(t, Config{})
	watcher.exists("/a", true)
	watcher.children("/a", true)
	watcher.addWatch("/a/b", wire.AddWatchPersistentRecursive)
	actor.exists("/a", true)
	if c := w.tree.Counts(); c.Watches != 4 || c.Watchers != 2 || c.WatchedPaths != 2 {
		t.Errorf("counts %+v", c)
	}
	watcher.disconnect()
	if c := w.tree.Counts(); c.Watches != 1 || c.Watchers != 1 || c.WatchedPaths != 1 {
		t.Errorf("counts after a disconnect: %+v", c)
	}
	actor.set("/a", "", -1)
	if tab := &w.tree.watches; tab.total != 0 || len(tab.byPath) != 0 || tab.recursive != 0 {
		t.Errorf("watches are left: %+v", tab)
	}
}

func TestRemoveAndCheckWatches(t *testing.T) {
	all := []wire.WatcherType{wire.WatcherChildren, wire.WatcherData, wire.WatcherAny, wire.WatcherPersistent, wire.WatcherPersistentRecursive}
	for _, tt := range []struct {
		set  func(*peer)
		name string
		has  []wire.WatcherType
	}{
		{func(*peer) {}, "none", nil},
		{func(p *peer) { p.exists("/a", true) }, "exists", []wire.WatcherType{wire.WatcherData, wire.WatcherAny}},
		{func(p *peer) { p.children("/a", true) }, "children", []wire.WatcherType{wire.WatcherChildren, wire.WatcherAny}},
		{func(p *peer) { p.addWatch("/a", 0) }, "persistent", []wire.WatcherType{wire.WatcherAny, wire.WatcherPersistent}},
		{func(p *peer) { p.addWatch("/a", 1) }, "recursive", []wire.WatcherType{wire.WatcherAny, wire.WatcherPersistentRecursive}},
	} {
		for _, typ := range all {
			want := wire.ErrNoWatcher
			if slices.Contains(tt.has, typ) {
				want = wire.ErrOK
			}
			w, watcher, actor := newWatchHarness(t, Config{})
			actor.exists("/a", true) // watches of other clients do not count
			actor.children("/a", true)
			tt.set(watcher)
			check := &wire.CheckWatchesRequest{Path: "/a", Type: typ}
			if r := watcher.call(wire.OpCheckWatches, check); r.Err != want {
				t.Errorf("%s: check of type %d: %s", tt.name, typ, r.Err.Name())
			}
			remove := &wire.RemoveWatchesRequest{Path: "/a", Type: typ}
			if r := watcher.call(wire.OpRemoveWatches, remove); r.Err != want {
				t.Errorf("%s: removal of type %d: %s", tt.name, typ, r.Err.Name())
			}
			if r := watcher.call(wire.OpRemoveWatches, remove); r.Err != wire.ErrNoWatcher {
				t.Errorf("%s: second removal of type %d: %s", tt.name, typ, r.Err.Name())
			}
			left := w.tree.watches.bits("/a", w.tree.conns[watcher.id])
			if want == wire.ErrOK && left != 0 {
				t.Errorf("%s: removal of type %d leaves %b", tt.name, typ, left)
			}
			actor.set("/a", "", -1)
			actor.wantEvents("data /a")
		}
	}
}

func TestInvalidWatchTypesAreRefused(t *testing.T) {
	_, p, _ := newWatchHarness(t, Config{})
	for _, typ := range []wire.WatcherType{0, 6, -1} {
		p.want(p.call(wire.OpCheckWatches, &wire.CheckWatchesRequest{Path: "/a", Type: typ}).Err, wire.ErrMarshalling, "check")
		p.want(p.call(wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: "/a", Type: typ}).Err, wire.ErrMarshalling, "remove")
	}
	p.want(p.addWatch("/a", 2), wire.ErrMarshalling, "mode 2")
	p.want(p.addWatch("/a", -1), wire.ErrMarshalling, "mode -1")
}

func TestEventsNeedRead(t *testing.T) {
	_, watcher, actor := newWatchHarness(t, Config{})
	actor.auth("digest", "ann:secret")
	list := []wire.ACL{{Perms: 31, Scheme: "auth"}}
	watcher.addWatch("/", wire.AddWatchPersistentRecursive)
	actor.addWatch("/", wire.AddWatchPersistentRecursive)
	actor.mkACL("/private", list...)
	actor.set("/private", "x", -1)
	actor.remove("/private", -1)
	actor.wantEvents("created /private", "data /private", "deleted /private")
	watcher.wantEvents()
}

// TestRecursiveWatchesNeedReadOnAncestors checks that a recursive watch reports only nodes that the
// client could find by listing the nodes from the watched one downwards.
func TestRecursiveWatchesNeedReadOnAncestors(t *testing.T) {
	_, watcher, actor := newWatchHarness(t, Config{})
	actor.auth("digest", "ann:secret")
	list := []wire.ACL{{Perms: 31, Scheme: "auth"}}
	watcher.addWatch("/", wire.AddWatchPersistentRecursive)
	watcher.addWatch("/closed/open", wire.AddWatchPersistentRecursive)
	watcher.addWatch("/closed/named", wire.AddWatchPersistentRecursive)
	actor.mkACL("/closed", list...)
	actor.mk("/closed/secret", 0)
	actor.set("/closed/secret", "x", -1)
	actor.remove("/closed/secret", -1)
	for _, dir := range []string{"/closed/named", "/closed/open", "/closed/other"} {
		actor.mk(dir, 0)
		actor.mk(dir+"/below", 0)
	}
	// A client that watches a path knows the name, and may get events of the node.
	watcher.wantEvents("created /closed/named", "created /closed/named/below", "created /closed/open", "created /closed/open/below")
}

// TestRecursiveWatchWithoutReadDoesNotHideDeletion checks that a client that watches the children
// of a node gets the event of its deletion, even if a recursive watch of the same client does not
// report the node.
func TestRecursiveWatchWithoutReadDoesNotHideDeletion(t *testing.T) {
	_, watcher, actor := newWatchHarness(t, Config{})
	actor.auth("digest", "ann:secret")
	actor.mkACL("/closed", wire.ACL{Perms: wire.PermAll, Scheme: "auth"})
	actor.mk("/closed/open", 0)
	for _, path := range []string{"/", "/closed"} {
		watcher.addWatch(path, wire.AddWatchPersistentRecursive)
	}
	watcher.children("/closed/open", true)
	actor.remove("/closed/open", -1)
	watcher.wantEvents("deleted /closed/open")
}

// TestWatchTableAgreesWithModel compares the table with a map under random changes.
func TestWatchTableAgreesWithModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	type key struct {
		path string
		c    *conn
	}
	table, model := newWatchTable(), make(map[key]watchBits)
	conns := []*conn{{id: 1}, {id: 2}, {id: 3}}
	for range 20_000 {
		k := key{"/" + string(rune('a'+rng.IntN(5))), conns[rng.IntN(3)]}
		switch rng.IntN(10) {
		case 0:
			for path := range k.c.watched.set().all() {
				table.set(path, k.c, 0)
			}
			for m := range model {
				if m.c == k.c {
					delete(model, m)
				}
			}
		default:
			some, others := watchBits(rng.IntN(32)), watchBits(rng.IntN(32))
			bits := some & others
			table.set(k.path, k.c, bits)
			if model[k] = bits; bits == 0 {
				delete(model, k)
			}
		}
		total, recursiveEntries, paths := 0, 0, make(map[string]int)
		for m, bits := range model {
			if got := table.bits(m.path, m.c); got != bits {
				t.Fatalf("%s: bits %b, want %b", m.path, got, bits)
			}
			total += bits.count()
			paths[m.path]++
			if bits&dataRecursive != 0 {
				recursiveEntries++
			}
		}
		if table.total != total || table.recursive != recursiveEntries || len(table.byPath) != len(paths) {
			t.Fatalf("%d watches, %d recursive, %d paths; want %d, %d, %d",
				table.total, table.recursive, len(table.byPath), total, recursiveEntries, len(paths))
		}
	}
}

// TestPathSetAgreesWithMap adds and removes random paths. The set grows and shrinks several times.
func TestPathSetAgreesWithMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s pathSet
	model := make(map[string]bool)
	for _, size := range []int{40, 5, 3 * fewPaths, 10, fewPaths + 1, 200, 20 * fewPaths, 0, 8, 0} {
		for len(model) != size {
			path := fmt.Sprint("/", rng.IntN(40*fewPaths))
			switch {
			case len(model) < size && !model[path]:
				s.add(path)
				model[path] = true
			case len(model) > size:
				for path = range model {
					break
				}
				s.remove(path)
				delete(model, path)
			}
		}
		seen, room := 0, 0
		for path := range s.all() {
			if seen++; !model[path] || !s.has(path) {
				t.Fatalf("the set has %s: %v, and yields it; it was added: %v", path, s.has(path), model[path])
			}
		}
		for _, m := range s.maps {
			room += m.most
		}
		if seen != size || s.count != size || s.has("/none") {
			t.Fatalf("%d paths, %d are counted, want %d", seen, s.count, size)
		}
		most := 4*size + keptPaths
		if size > fewPaths/4 {
			most += (manyMaps - 1) * keptPaths
		}
		if room > most {
			t.Errorf("%d paths have room for %d, want at most %d", size, room, most)
		}
	}
}

// TestRemovedWatchesTakeNoMemory: connections set many watches. Requests and events remove all or
// nearly all of them.
func TestRemovedWatchesTakeNoMemory(t *testing.T) {
	const watches, most = 50_000, 1 << 20
	w := newHarness(t, Config{})
	writer, paths := w.dial(), make([]string, watches)
	for i := range paths {
		paths[i] = fmt.Sprint("/", i)
	}
	for i, left := range []int{0, 0, 100} {
		before, p := heapSize(), w.dial()
		p.send(1, wire.OpSetWatches, &wire.SetWatches{
			DataWatches: []string{}, ExistWatches: paths, ChildWatches: []string{},
		})
		for w.tree.Continue(p.id, w.now, &w.out) {
		}
		w.flush()
		for k, path := range paths[left:] {
			if k%50 == 0 {
				writer.mk(path, 0)
				writer.want(writer.remove(path, -1), wire.ErrOK, "delete")
				continue
			}
			p.send(2, wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: path, Type: wire.WatcherAny})
		}
		p.replies, p.events, p.zxids = nil, nil, nil
		if n := w.tree.watches.total; n != left {
			t.Fatalf("%d watches, want %d", n, left)
		}
		// The first connection grows the table of all watches.
		if kept := heapSize() - before; i > 0 && kept > most {
			t.Errorf("%d watches are left and take %d bytes, want at most %d", left, kept, most)
		}
	}
	w.check()
}

// TestRemovedWatchersTakeNoMemory: many connections watch a path. A request or an event removes the
// watches of all but one.
func TestRemovedWatchersTakeNoMemory(t *testing.T) {
	for _, byEvent := range []bool{false, true} {
		w := newHarness(t, Config{})
		last := w.dial()
		last.want(last.addWatch("/x", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
		var all []*peer
		for range 60 {
			p := w.dial()
			p.exists("/x", true)
			all = append(all, p)
		}
		if byEvent {
			last.mk("/x", 0)
		} else {
			for _, p := range all {
				p.send(1, wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: "/x", Type: wire.WatcherAny})
			}
		}
		if list := w.tree.watches.byPath["/x"]; len(list) != 1 || cap(list) > 4 {
			t.Errorf("by an event: %v; %d watches are left with room for %d", byEvent, len(list), cap(list))
		}
		w.check()
	}
}

func BenchmarkFireThousandWatches(b *testing.B) {
	w := newHarness(b, Config{})
	actor := w.dial()
	actor.mk("/a", wire.ModePersistent)
	var watchers []*peer
	for range 1000 {
		watchers = append(watchers, w.dial())
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range watchers {
			w.tree.addWatch("/a", w.tree.conns[p.id], dataOnce)
		}
		w.tree.fire(w.tree.nodes.get("/a"), wire.EventNodeDataChanged, nil, &w.out)
		w.out.Reset()
	}
}
