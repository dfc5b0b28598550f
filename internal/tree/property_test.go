package tree

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// checkInvariants checks the invariants of a Tree.
func checkInvariants(tb testing.TB, t *Tree) {
	tb.Helper()
	var seen int
	var size int64
	uses := make(map[*aclSet]int)
	kinds := make(map[ownerKind]int)
	ownerOf := make(map[*node]*session)
	for _, s := range t.sessions {
		for _, n := range s.ownedNodes() {
			ownerOf[n] = s
		}
	}
	t.root.walk(func(n *node) bool {
		seen++
		size += n.size()
		uses[t.acls.of(n)]++
		if t.nodes.get(n.path()) != n {
			tb.Fatalf("the table does not find %q", n.path())
		}
		var children, below int32
		var names, bytes int64
		for c := n.extraOrNew().first; c != nil; c = c.next {
			children++
			names += int64(len(c.name()))
			below += 1 + c.extraOrNew().below
			bytes += int64(len(c.data())) + c.extraOrNew().belowBytes
			if c.parent != n {
				tb.Fatalf("the parent of %q is not the node that lists it", c.path())
			}
		}
		if children != n.extraOrNew().children {
			tb.Fatalf("%q counts %d children, has %d", n.path(), n.extraOrNew().children, children)
		}
		if r := n.extraOrNew(); r.below != below || r.belowBytes != bytes || r.nameBytes != names {
			tb.Fatalf("%q counts %d nodes and %d bytes below it and %d of names, has %d, %d and %d",
				n.path(), r.below, r.belowBytes, r.nameBytes, below, bytes, names)
		}
		if _, ok := t.quotas[n.path()]; ok && !n.extraOrNew().hasQuota {
			tb.Fatalf("%q has no mark of its quota", n.path())
		}
		recursive := func(e watch) bool { return e.bits&dataRecursive != 0 }
		if slices.ContainsFunc(t.watches.byPath[n.path()], recursive) && !n.extraOrNew().recursiveWatch {
			tb.Fatalf("%q has no mark of its recursive watches", n.path())
		}
		kind := kindOf(n.owner)
		if kinds[kind]++; kind != ephemeral {
			return true
		}
		if children > 0 {
			tb.Fatalf("ephemeral %q has children", n.path())
		}
		if s := t.sessions[n.owner]; s == nil {
			tb.Fatalf("%q belongs to no session", n.path())
		} else if ownerOf[n] != s {
			tb.Fatalf("the session of %q does not list it", n.path())
		}
		return true
	})
	owned := 0
	for _, s := range t.sessions {
		owned += s.nodes().count
	}
	watchers := 0
	for _, c := range t.conns {
		if c.watched.len() > 0 {
			watchers++
		}
	}
	if watchers += len(t.backlog.closedConns); watchers != t.watches.watchers || owned != t.ephemerals {
		tb.Fatalf("%d watchers and %d ephemeral nodes are counted, there are %d and %d", t.watches.watchers, t.ephemerals, watchers, owned)
	}
	if seen != t.nodes.len() || size != t.dataSize || owned != kinds[ephemeral] ||
		t.containers.count != kinds[container] || t.ttls.count != kinds[ttlNode] {
		tb.Fatalf("%d nodes of %d, %d bytes of %d, kinds %v", seen, t.nodes.len(), size, t.dataSize, kinds)
	}
	for s, n := range uses {
		if s.refs != n || t.acls.byKey[s.key] != s || *t.acls.sets.at(s.number) != s {
			tb.Fatalf("a list has %d users, %d counted", n, s.refs)
		}
	}
	if len(uses) != len(t.acls.byKey) || len(uses) != int(t.acls.next)-len(t.acls.free) {
		tb.Fatalf("%d lists in use of %d", len(uses), len(t.acls.byKey))
	}
}

// random creates random requests on few paths, so that they conflict.
type random struct {
	*rand.Rand
	w *harness
}

func (r *random) path() string {
	path := ""
	for range 1 + r.IntN(3) {
		path += "/" + string(rune('a'+r.IntN(3)))
	}
	switch r.IntN(60) {
	case 0:
		return path + "/"
	case 1:
		return "/zookeeper/quota" + path
	case 2:
		return "/"
	}
	return path
}

func (r *random) version() int32 { return int32(r.IntN(3)) - 1 }

func (r *random) acl() []wire.ACL {
	switch r.IntN(12) {
	case 0:
		return []wire.ACL{acl(wire.Perm(r.IntN(32)), "world", "anyone")}
	case 1:
		return []wire.ACL{acl(31, "auth", ""), acl(wire.PermRead, "world", "anyone")}
	}
	return openACL()
}

// write returns a random operation of a multi.
func (r *random) write() wire.MultiOp {
	create := &wire.CreateRequest{Path: r.path(), Data: bytes.Repeat([]byte("d"), r.IntN(20)), ACL: r.acl(), Flags: wire.CreateMode(r.IntN(5))}
	switch r.IntN(10) {
	case 0, 1, 2:
		return wire.MultiOp{Op: wire.OpCreate, Req: create}
	case 3:
		return wire.MultiOp{Op: wire.OpCreate2, Req: create}
	case 4:
		create.Flags = wire.ModeContainer
		return wire.MultiOp{Op: wire.OpCreateContainer, Req: create}
	case 5:
		return wire.MultiOp{Op: wire.OpCreateTTL, Req: &wire.CreateTTLRequest{
			Path: create.Path, ACL: create.ACL, Flags: wire.ModePersistentTTL, TTL: int64(r.IntN(100_000))}}
	case 6:
		return opSet(r.path(), r.version())
	case 7:
		return opCheck(r.path(), r.version())
	}
	return opDelete(r.path(), r.version())
}

// request returns a random request.
func (r *random) request() (wire.OpCode, wire.Record) {
	watch := r.IntN(2) == 0
	switch r.IntN(16) {
	case 0:
		return wire.OpExists, &wire.ExistsRequest{Path: r.path(), Watch: watch}
	case 1:
		return wire.OpGetData, &wire.GetDataRequest{Path: r.path(), Watch: watch}
	case 2:
		return wire.OpGetChildren2, &wire.GetChildren2Request{Path: r.path(), Watch: watch}
	case 3:
		return wire.OpAddWatch, &wire.AddWatchRequest{Path: r.path(), Mode: wire.AddWatchMode(r.IntN(2))}
	case 4:
		return wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: r.path(), Type: wire.WatcherType(r.IntN(7))}
	case 5:
		return wire.OpSetACL, &wire.SetACLRequest{Path: r.path(), ACL: r.acl(), Version: r.version()}
	case 6, 7, 8:
		m := &wire.MultiRequest{}
		for range r.IntN(6) {
			m.Ops = append(m.Ops, r.write())
		}
		return wire.OpMulti, m
	case 9:
		return wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: r.path()}
	}
	op := r.write()
	if op.Op == wire.OpCheck {
		return wire.OpPing, nil
	}
	return op.Op, op.Req
}

// step executes a random action of a client.
func (r *random) step() {
	w := r.w
	p := w.peers[ConnID(1+r.Int64N(int64(w.lastID)))]
	switch n := r.IntN(100); {
	case n == 0:
		w.dial()
	case n == 1 && !p.closed:
		p.disconnect()
	case n == 2:
		w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 4000 + r.Int32N(20_000)})
	case n == 3 && !p.closed:
		p.call(wire.OpCloseSession, nil)
	case n == 4 && !p.closed:
		p.auth("digest", fmt.Sprintf("u%d:x", r.IntN(2)))
	case n < 10:
		w.advance(time.Duration(r.IntN(2000)) * time.Millisecond)
		w.tick()
	case !p.closed:
		before, zxid := stateWithoutZxid(w.tree), w.tree.Zxid()
		op, rec := r.request()
		got := p.call(op, rec)
		if took := w.tree.Zxid() - zxid; isWrite(op) != (took == 1) || took > 1 {
			w.tb.Fatalf("%s took %d transactions", op, took)
		}
		if got.Zxid != w.tree.Zxid() {
			w.tb.Fatalf("%s: zxid %d in the answer, %d is the last", op, got.Zxid, w.tree.Zxid())
		}
		if failed(op, got) && !bytes.Equal(stateWithoutZxid(w.tree), before) {
			w.tb.Fatalf("%s failed and changed the state", op)
		}
	}
}

// failed reports whether a request failed. The results of a multi show it.
func failed(op wire.OpCode, r reply) bool {
	if op == wire.OpMulti && r.Err == wire.ErrOK {
		return len(r.body) >= 4 && bytes.Equal(r.body[:5], []byte{255, 255, 255, 255, 0})
	}
	return r.Err != wire.ErrOK
}

// TestRandomHistoriesKeepInvariants checks that a failed request changes nothing, and that replay
// and restore yield the same bytes.
func TestRandomHistoriesKeepInvariants(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newHarness(t, Config{ExtendedTypes: true, Rand: seededRand(byte(seed))})
			r := &random{rand.New(rand.NewPCG(seed, 0)), w}
			w.dial()
			for i := range 1500 {
				r.step()
				if i%50 != 0 {
					continue
				}
				checkInvariants(t, w.tree)
				w.check()
				if i%300 == 0 {
					w.shadow = restored(t, w.tree.cfg, w.tree)
				}
			}
			w.check()
			for _, p := range w.peers {
				p.disconnect()
			}
			if tab := &w.tree.watches; tab.total != 0 || tab.recursive != 0 || len(tab.byPath) != 0 {
				t.Errorf("watches of closed connections are left: %+v", tab)
			}
			w.advance(time.Hour)
			w.tick()
			if c := w.tree.Counts(); c.Sessions+c.Ephemerals != 0 {
				t.Errorf("after the end of all sessions: %+v", c)
			}
			w.check()
		})
	}
}

// TestClosedSubtreeIsHidden checks that changes in a subtree on which a client has no permission do
// not affect the client's answers and events. The client has no DELETE on the node above the
// subtree: a refused delete reveals the version of a node, and whether it has children.
func TestClosedSubtreeIsHidden(t *testing.T) {
	for seed := range uint64(100) {
		r := &random{rand.New(rand.NewPCG(seed, 5)), nil}
		var owners, strangers [2]*peer
		roots := []string{"/a", "/elsewhere"} // each owner changes one of them
		for i := range roots {
			w := newHarness(t, Config{ExtendedTypes: true, EnforceQuota: true})
			owners[i], strangers[i] = w.dial(), w.dial()
			owners[i].auth("digest", "ann:secret")
			for _, root := range roots {
				for _, path := range []string{root, root + "/a", root + "/a/b"} {
					owners[i].want(owners[i].mkACL(path, acl(31, "auth", "")), wire.ErrOK, path)
				}
			}
			list := []wire.ACL{acl(wire.PermCreate|wire.PermRead|wire.PermWrite, "world", "anyone")}
			owners[i].call(wire.OpSetACL, &wire.SetACLRequest{Path: "/", ACL: list, Version: -1})
		}
		for range 100 {
			kind := r.IntN(6)
			for i, root := range roots {
				owners[i].changeBelow(root, kind)
			}
			op, rec := r.request()
			if r.IntN(8) == 0 {
				op, rec = wire.OpSetWatches, &wire.SetWatches{
					RelativeZxid: r.Int64N(100), DataWatches: []string{r.path()},
					ExistWatches: []string{r.path()}, ChildWatches: []string{r.path()},
				}
			}
			got, want := strangers[0].call(op, rec), strangers[1].call(op, rec)
			events, wantEvents := strangers[0].takeEvents(), strangers[1].takeEvents()
			if !reflect.DeepEqual(got, want) || !slices.Equal(events, wantEvents) {
				t.Fatalf("seed %d: %s %+v: %v and events %q, without the changes %v and %q",
					seed, op, rec, got, events, want, wantEvents)
			}
		}
	}
}

// changeBelow changes nodes below root on which only p has permissions.
func (p *peer) changeBelow(root string, kind int) {
	p.w.tb.Helper()
	list := []wire.ACL{acl(31, "auth", "")}
	switch kind {
	case 0:
		p.want(p.set(root, "x", -1), wire.ErrOK, root)
	case 1:
		p.want(p.set(root+"/a/b", "x", -1), wire.ErrOK, root)
	case 2:
		p.want(p.mkACL(root+"/a/c", list...), wire.ErrOK, root)
		p.want(p.remove(root+"/a/c", -1), wire.ErrOK, root)
	case 3: // an open node below a closed one is also hidden
		p.mk(root+"/new", wire.ModeEphemeral)
		p.want(p.remove(root+"/new", -1), wire.ErrOK, root)
	case 4:
		req := &wire.SetACLRequest{Path: root + "/a", ACL: list, Version: -1}
		p.want(p.call(wire.OpSetACL, req).Err, wire.ErrOK, root)
	}
}
