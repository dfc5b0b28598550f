package tree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// allPeers permits everything to the peers of a harness. Its checks count as a search for each of
// their identities, although they take less.
var allPeers = wire.ACL{Perms: wire.PermAll, Scheme: "ip", ID: "10.0.0.0/8"}

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

// TestPermissionChecksOfEventsAreBounded checks that a multi is refused if its permission checks
// take too long, and that the results are kept: a client with many identities is checked once for
// each list.
func TestPermissionChecksOfEventsAreBounded(t *testing.T) {
	const watchers, identities = 40, maxIdentities - 1 // and the address
	chain := func(names int) string { return strings.Repeat("/d", names) }
	for _, tt := range []struct {
		name    string
		names   int // of the node, each with another list
		entries int // of each list
		most    int // permitted changes of the node in a multi
	}{
		{"one", 1, 1, maxOps},
		{"long list", 1, 200, maxOps},
		{"deep", 8, 1, maxEvents / watchers / 4},
		{"deep, long lists", 8, 200, maxEvents / watchers / 4},
		{"too deep, long lists", 60, 200, 0},
	} {
		w := newHarness(t, Config{})
		writer := w.dial()
		for i := range tt.names {
			list := append(manyACLs(tt.entries), wire.ACL{Perms: wire.PermAll, Scheme: "digest", ID: fmt.Sprint(i, ":x")})
			writer.want(writer.mkACL(chain(i+1), append(list, allPeers)...), wire.ErrOK, "create")
		}
		for range watchers {
			p := w.dial()
			p.manyIdentities(identities)
			p.want(p.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, tt.name)
		}
		done := func(n int) bool {
			_, before, _ := w.tree.Get(chain(tt.names))
			writer.want(writer.ask(wire.OpMulti, setOps(chain(tt.names), n), new(wire.MultiResponse)), wire.ErrOK, "multi")
			_, after, _ := w.tree.Get(chain(tt.names))
			return after.Version != before.Version
		}
		if n := min(tt.most, maxEvents/watchers*3/4); !done(n) && n > 0 {
			t.Errorf("%s: %d changes are refused", tt.name, n)
		}
		// A multi with one change is never refused.
		if n := max(min(2*tt.most, maxEvents/watchers)+1, 2); done(n) {
			t.Errorf("%s: %d changes are not refused", tt.name, n)
		}
		for id, p := range w.peers {
			if p.closed {
				t.Errorf("%s: client %d is closed", tt.name, id)
			}
		}
	}
}

// TestStrangersDoNotLimitMultis: the clients of one address watch everything above and at the new
// nodes of another client, without a permission there, and have many identities.
func TestStrangersDoNotLimitMultis(t *testing.T) {
	const strangers, creates = 60, 700
	for _, fresh := range []bool{false, true} {
		w := newHarness(t, Config{})
		w.peer.Share = 1
		owner := w.dial()
		owner.auth("digest", "owner:x")
		acl := []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}
		parents := []string{"/", "/team", "/team/locks", "/team/locks/db"}
		for _, path := range parents[1:] {
			owner.want(owner.mkACL(path, acl...), wire.ErrOK, "create")
		}
		if fresh { // no node has the ACL of the new nodes
			acl = append(acl, wire.ACL{Perms: wire.PermRead, Scheme: "ip", ID: "10.9.9.9"})
		}
		var ops []wire.MultiOp
		for i := range creates {
			path := fmt.Sprint("/team/locks/db/", i)
			ops = append(ops, wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path, ACL: acl}})
		}
		w.peer.Share = 2
		var all []*peer
		for range strangers {
			p := w.dial()
			p.manyIdentities(maxIdentities - 2)
			for _, path := range parents {
				p.want(p.addWatch(path, wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
				p.want(p.addWatch(path, wire.AddWatchPersistent), wire.ErrOK, "addWatch")
			}
			for i := range creates {
				p.want(p.addWatch(fmt.Sprint("/team/locks/db/", i), wire.AddWatchPersistent), wire.ErrOK, "addWatch")
			}
			all = append(all, p)
		}
		if got := codes(owner.multi(ops...)); len(got) != creates || slices.Min(got) != wire.ErrOK {
			t.Errorf("a multi is refused because of strangers: %v", slices.Compact(got))
		}
		for i, p := range all {
			if p.closed || len(p.events) > 0 {
				t.Errorf("stranger %d is closed: %v; %d events", i, p.closed, len(p.events))
			}
		}
	}
}

// TestConnectionCountsOncePerChange: however many watches of a connection are above a change, the
// connection gets one event, which counts once.
func TestConnectionCountsOncePerChange(t *testing.T) {
	const names, watchers = 8, 20
	w := newHarness(t, Config{})
	p, path := w.dial(), ""
	for range names {
		path = p.mk(path+"/d", 0)
	}
	for range watchers {
		q := w.dial()
		for i := 1; i <= names; i++ {
			q.want(q.addWatch(path[:2*i], wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		}
	}
	if got := codes(p.multi(setOps(path, maxEvents/watchers/2).Ops...)); slices.Min(got) != wire.ErrOK {
		t.Errorf("%d events: %v", maxEvents/2, slices.Compact(got))
	}
	if got := codes(p.multi(setOps(path, maxEvents/watchers+1).Ops...)); slices.Min(got) == wire.ErrOK {
		t.Errorf("%d events are not refused", maxEvents+1)
	}
}

// TestCountedEventsAreSent compares the count for random multis with what their delivery does. The
// events of persistent and recursive watches are counted exactly. The lookups and the copied bytes
// of the delivery are at most what was counted.
func TestCountedEventsAreSent(t *testing.T) {
	for _, oneShot := range []bool{false, true} {
		countRandomMultis(t, oneShot)
	}
}

func countRandomMultis(t *testing.T, oneShot bool) {
	const clients, multis = 6, 2000
	rnd := rand.New(rand.NewPCG(1, 2))
	w := newHarness(t, Config{SuperDigest: digestID([]byte("super:x"))})
	owner := w.dial()
	owner.auth("digest", "super:x")
	paths := []string{"/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b/e", "/f", "/f/g", "/f/" + strings.Repeat("l", longPath)}
	modes := []wire.AddWatchMode{wire.AddWatchPersistent, wire.AddWatchPersistentRecursive}
	anyPath := func() string { return append(paths, "/")[rnd.IntN(len(paths)+1)] }
	var all []*peer
	for i := range clients {
		p := w.dial()
		p.auth("digest", fmt.Sprint("u", i%3, ":x"))
		for n := range i * 10 {
			p.auth("digest", fmt.Sprint("v", n, ":x"))
		}
		for range 3 {
			p.addWatch(anyPath(), modes[rnd.IntN(2)])
		}
		all = append(all, p)
	}
	randomACL := func() []wire.ACL {
		id := digestID(fmt.Appendf(nil, "u%d:x", rnd.IntN(3)))
		list := []wire.ACL{{Perms: wire.Perm(1 + rnd.IntN(31)), Scheme: "digest", ID: id}}
		return append(list, manyACLs(rnd.IntN(2)*60)...)
	}
	common := [][]wire.ACL{openACL()}
	for range paths {
		common = append(common, randomACL())
	}
	sent := 0
	for n := range multis {
		if oneShot {
			all[rnd.IntN(clients)].exists(anyPath(), true)
			all[rnd.IntN(clients)].children(anyPath(), true)
		}
		x := txn{op: wire.OpMulti}
		prepare := preparer{t: w.tree, c: w.tree.conns[owner.id], pending: make(map[string]nodeView),
			subtrees: make(map[string]string), quotas: make(map[string]quotaRoom)}
		w.tree.beginCall(w.now)
		end := w.tree.cachePermissions()
		near := rnd.IntN(len(paths) - 1)
		for range 20 {
			path := paths[near+rnd.IntN(2)]
			op := []wire.MultiOp{opCreate(path, 0), opDelete(path, -1), opSet(path, -1)}[rnd.IntN(3)]
			if q, ok := op.Req.(*wire.CreateRequest); ok {
				if q.ACL = slices.Clone(common[near]); rnd.IntN(4) == 0 {
					q.ACL = randomACL()
				}
			}
			if sub, err := prepare.prepare(op.Op, op.Req); err == wire.ErrOK {
				x.subs = append(x.subs, sub)
			}
		}
		e := w.tree.newEventCount()
		for i := range x.subs {
			e.add(&x.subs[i])
		}
		counted, before := e.work+e.lookups(), w.tree.lookups
		w.tree.commit(&x, w.now, &w.out)
		end()
		if did := w.tree.lookups - before + w.tree.longPaths/copiedPerWork; did > counted {
			t.Fatalf("multi %d: the delivery did work %d, counted %d: %+v", n, did, counted, x.subs)
		}
		w.flush()
		got := 0
		for _, p := range all {
			for _, event := range p.takeEvents() {
				_, path, _ := strings.Cut(event, " ")
				got += eventCost + len(path)
				sent++
			}
		}
		if got < e.size || got > e.size && !oneShot {
			t.Fatalf("multi %d: events of %d bytes, counted %d: %+v", n, got, e.size, x.subs)
		}
	}
	if sent < multis {
		t.Errorf("%d multis caused only %d events", multis, sent)
	}
	w.check()
}

// TestHiddenNodesCostNoPermissionChecks: clients with recursive watches on the root may not list a
// node below which a multi changes nodes that have different, long lists.
func TestHiddenNodesCostNoPermissionChecks(t *testing.T) {
	const clients, nodes = 60, 300
	for name, ops := range map[string]func(path string, acl []wire.ACL) []wire.MultiOp{
		"existing": func(path string, _ []wire.ACL) []wire.MultiOp { return []wire.MultiOp{opSet(path, -1)} },
		"below existing": func(path string, acl []wire.ACL) []wire.MultiOp {
			return []wire.MultiOp{{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path + "/x", ACL: acl}}}
		},
		"new": func(path string, acl []wire.ACL) []wire.MultiOp {
			return []wire.MultiOp{{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path + "n", ACL: acl}}}
		},
		"below new": func(path string, acl []wire.ACL) []wire.MultiOp {
			return []wire.MultiOp{
				{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path + "n", ACL: acl}},
				{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path + "n/x", ACL: acl}},
			}
		},
	} {
		w := newHarness(t, Config{})
		owner := w.dial()
		owner.auth("digest", "owner:x")
		auth := wire.ACL{Perms: wire.PermAll, Scheme: "auth"}
		owner.want(owner.mkACL("/team", auth), wire.ErrOK, "create")
		var all []wire.MultiOp
		for i := range nodes {
			path, acl := fmt.Sprint("/team/", i), append(manyACLs(20), auth)
			acl[0] = wire.ACL{Perms: wire.PermAll, Scheme: "digest", ID: fmt.Sprint("node", i, ":x")}
			owner.want(owner.mkACL(path, acl...), wire.ErrOK, "create")
			all = append(all, ops(path, acl)...)
		}
		for range clients {
			p := w.dial()
			p.manyIdentities(maxIdentities - 2)
			p.want(p.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		}
		if got := codes(owner.multi(all...)); slices.Min(got) != wire.ErrOK {
			t.Errorf("%s: a multi is refused because of hidden clients: %v", name, slices.Compact(got))
		}
		if w.tree.lookups > maxWork {
			t.Errorf("%s: %d lookups, want at most %d", name, w.tree.lookups, maxWork)
		}
	}
}

// TestRecreatedListIsCheckedOnce: a multi deletes and creates a node many times, always with the
// same list. Before the multi, no node has the list, or only that node.
func TestRecreatedListIsCheckedOnce(t *testing.T) {
	const clients, pairs = 60, 300
	for _, exists := range []bool{false, true} {
		w := newHarness(t, Config{})
		for range clients {
			p := w.dial()
			p.manyIdentities(maxIdentities - 1)
			p.want(p.addWatch("/a", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
		}
		writer, list := w.dial(), manyACLs(40)
		create := func() wire.MultiOp {
			return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: "/a", ACL: list}}
		}
		writer.want(writer.mkACL("/a", list...), wire.ErrOK, "create")
		var ops []wire.MultiOp
		if !exists {
			writer.want(writer.remove("/a", -1), wire.ErrOK, "delete")
			ops = append(ops, create())
		}
		for range pairs {
			ops = append(ops, opDelete("/a", -1), create())
		}
		if got := codes(writer.multi(ops...)); slices.Min(got) != wire.ErrOK {
			t.Errorf("a multi is refused because of clients that see nothing: %v", slices.Compact(got))
		}
		if w.tree.lookups > maxWork {
			t.Errorf("the list existed: %v; %d lookups, want at most %d", exists, w.tree.lookups, maxWork)
		}
	}
}

// TestOneShotWorkOfMultiIsBounded: the one-shot watches of one change of a multi take too many
// permission checks, or their path is too long to copy for each of them. If the multi has no other
// change, the server closes some of the clients, as for the change alone. Otherwise it refuses the
// multi.
func TestOneShotWorkOfMultiIsBounded(t *testing.T) {
	const most = maxWork + maxWork/20 // and the requester's checks
	long, list := "/"+strings.Repeat("x", sharedPath-1), append(manyACLs(maxACL-1), allPeers)
	for _, tt := range []struct {
		name           string
		op             wire.MultiOp
		watchers       int
		alone, several bool // the change is made, and no client is closed
	}{
		{"few checks", opSet("/a", -1), 600, true, true},
		{"many checks", opSet("/a", -1), 1000, false, true},
		{"too many checks", opSet("/a", -1), 2000, false, false},
		{"few long paths", opCreate(long, 0), 100, true, true},
		{"many long paths", opCreate(long, 0), 200, false, true},
		{"too many long paths", opCreate(long, 0), 500, false, false},
	} {
		for _, ops := range [][]wire.MultiOp{{opCheck("/a", -1), tt.op}, {tt.op, opCreate("/b", 0)}} {
			w := newHarness(t, Config{})
			writer := w.dial()
			writer.mk("/a", 0)
			for range tt.watchers {
				p := w.dial()
				if tt.op.Op == wire.OpCreate {
					p.exists(long, true)
					continue
				}
				p.manyIdentities(maxIdentities - 1)
				p.exists("/a", true)
			}
			writer.send(7, wire.OpSetACL, &wire.SetACLRequest{Path: "/a", ACL: list, Version: -1})
			alone := ops[len(ops)-1].Req == tt.op.Req
			writer.send(8, wire.OpMulti, &wire.MultiRequest{Ops: ops})
			work := w.tree.lookups + w.tree.longPaths/copiedPerWork
			_, stat, _ := w.tree.Get("/a")
			_, _, created := w.tree.Get(long)
			done, closed := stat.Version > 0 || created, 0
			for _, p := range w.peers {
				if p.closed {
					closed++
				}
			}
			switch {
			case alone && (!done || closed == tt.watchers || (closed == 0) != tt.alone || work > most):
				t.Errorf("%s, the only change: done is %v, %d of %d clients are closed, work %d",
					tt.name, done, closed, tt.watchers, work)
			case !alone && (done != tt.several || closed > 0 || work > 2*most):
				t.Errorf("%s, one of two changes: done is %v, %d clients are closed, work %d",
					tt.name, done, closed, work)
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

// TestCostliestWatchersAreClosed: one change takes too many permission checks. The server closes the
// clients of the address whose watches cost the most, and of these the ones that cost the most. All
// others get their events.
func TestCostliestWatchersAreClosed(t *testing.T) {
	const names, entries, strangers, victims = 500, 255, 20, 5
	w := newHarness(t, Config{})
	writer, path := w.dial(), ""
	for i := range names {
		path += "/d"
		list := append(manyACLs(entries), wire.ACL{Perms: wire.PermAll, Scheme: "digest", ID: fmt.Sprint(i%2, ":x")})
		writer.want(writer.mkACL(path, append(list, allPeers)...), wire.ErrOK, "create")
	}
	watch := func(share Share, identities int) *peer {
		w.peer.Share = share
		p := w.dial()
		p.manyIdentities(identities)
		p.want(p.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		return p
	}
	var costly, cheap []*peer
	for range strangers {
		costly = append(costly, watch(1, maxIdentities-1))
	}
	for i := range victims {
		cheap = append(cheap, watch(Share(2+i), i), watch(1, i), watch(0, i))
	}
	writer.send(7, wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1})
	closed := 0
	for _, p := range costly {
		if p.closed {
			closed++
		}
	}
	if closed == 0 || closed == strangers {
		t.Errorf("%d of %d strangers are closed", closed, strangers)
	}
	for i, p := range cheap {
		if p.closed || len(p.events) != 1 {
			t.Errorf("client %d, whose watch costs little: closed is %v, %d events", i, p.closed, len(p.events))
		}
	}
	for _, p := range costly {
		if !p.closed && len(p.events) != 1 {
			t.Errorf("a stranger that stayed got %d events", len(p.events))
		}
	}
	wantRefused(t, "replies", w.tree.Counters().RefusedReplies, int64(closed))
	w.check()
}

// TestCheapWatchersAreNotClosed: clients have recursive watches above a change below many long
// lists. Either the first list refuses them, or everyone may read. Other clients may read, and only
// the checks for these take long.
func TestCheapWatchersAreNotClosed(t *testing.T) {
	const names, entries, watchers, readers = 500, 255, 80, 20
	for _, hidden := range []bool{true, false} {
		w := newHarness(t, Config{})
		writer, path := w.dial(), "/top"
		writer.manyIdentities(1)
		writer.mk(path, 0)
		for i := range names {
			path += "/d"
			other := acl(wire.PermAll, "digest", fmt.Sprint(i%2, ":x"))
			list := append(manyACLs(entries), other, acl(wire.PermAll, "auth", ""))
			if !hidden {
				list = append(list, openACL()...)
			}
			writer.want(writer.mkACL(path, list...), wire.ErrOK, "create")
		}
		watch := func(share Share, user string, identities int) *peer {
			w.peer.Share = share
			p := w.dial()
			p.auth("digest", user)
			p.manyIdentities(identities)
			p.want(p.addWatch("/top", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
			return p
		}
		var cheap, costly []*peer
		for i := range watchers {
			cheap = append(cheap, watch(Share(i+1), "app:secret", 0))
		}
		for i := range readers {
			costly = append(costly, watch(Share(watchers+1+i), "reader:x", maxIdentities-2))
		}
		writer.send(7, wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1})
		for i, p := range cheap {
			if p.closed || (len(p.events) == 0) != hidden {
				t.Fatalf("hidden: %v; client %d is closed: %v; it got %d events",
					hidden, i, p.closed, len(p.events))
			}
		}
		closed := 0
		for _, p := range costly {
			if p.closed {
				closed++
			} else if len(p.events) != 1 {
				t.Errorf("hidden: %v; a reader that stayed got %d events", hidden, len(p.events))
			}
		}
		if (closed > 0) != hidden || closed == readers {
			t.Errorf("hidden: %v; %d of %d readers are closed", hidden, closed, readers)
		}
		if most := maxWork * 3 / 2; w.tree.lookups > most {
			t.Errorf("hidden: %v; %d lookups, want at most %d", hidden, w.tree.lookups, most)
		}
		w.check()
	}
}

// TestDeliveryTakesCountedWork compares the work that is counted for random events with what their
// delivery does.
func TestDeliveryTakesCountedWork(t *testing.T) {
	const clients, changes = 40, 500
	rnd := rand.New(rand.NewPCG(5, 6))
	w := newHarness(t, Config{SuperDigest: digestID([]byte("super:x"))})
	owner := w.dial()
	owner.auth("digest", "super:x")
	paths, long := []string{""}, "/"+strings.Repeat("l", longPath)
	for i := range 30 {
		path := paths[i] + "/d"
		if i == 25 {
			path = paths[i] + long
		}
		list := manyACLs(1 + rnd.IntN(300))
		for u := range 3 {
			if rnd.IntN(8) > 0 {
				id := digestID(fmt.Appendf(nil, "u%d:x", u))
				list = append(list, acl(wire.Perm(rnd.IntN(32))|wire.PermRead, "digest", id))
			}
		}
		if rnd.IntN(4) == 0 {
			list = append(list, acl(wire.Perm(rnd.IntN(32)), "world", "anyone"))
		}
		owner.want(owner.mkACL(path, list...), wire.ErrOK, "create")
		paths = append(paths, path)
	}
	modes := []wire.AddWatchMode{wire.AddWatchPersistent, wire.AddWatchPersistentRecursive}
	for i := range clients {
		p := w.dial()
		p.auth("digest", fmt.Sprint("u", i%4, ":x"))
		for n := range i {
			p.auth("digest", fmt.Sprint("v", n, ":x"))
		}
		for range 2 {
			path := paths[1+rnd.IntN(len(paths)-1)]
			p.want(p.addWatch(path, modes[rnd.IntN(2)]), wire.ErrOK, "addWatch")
		}
	}
	known, refused, estimated := 0, 0, 0
	for range changes {
		n := w.tree.nodes.get(paths[1+rnd.IntN(len(paths)-1)])
		f := w.tree.newFiring(n.path(), wire.EventNodeDataChanged, n.parent, w.tree.acls.of(n), &w.out)
		events := f.costlyEvents(dataMask, dataRecursive)
		counted := slices.Clone(events)
		most := 1 << rnd.IntN(14)
		for i := range counted {
			f.advance(&counted[i], most)
		}
		for i, e := range events {
			w.tree.beginCall(w.now)
			w.tree.watches.changes++
			seen := f.deliver(e.conn, e.above)
			did := w.tree.lookups + w.tree.longPaths/copiedPerWork
			c := counted[i]
			if did > e.work || did > c.work || c.known && did != c.work || c.checked > most {
				t.Fatalf("the delivery did work %d, counted %d at most, then %+v", did, e.work, c)
			}
			switch {
			case !c.known:
				estimated++
			case seen:
				known++
			default:
				refused++
			}
		}
		w.flush()
	}
	if min(known, refused, estimated) < changes {
		t.Errorf("only %d events are seen, %d are refused, and %d are not known",
			known, refused, estimated)
	}
}

// TestLongPathsCloseOnlyTheirWatchers: clients of one address watch a node with a long path before
// another client creates it. A client with a recursive watch on an ancestor gets the event.
func TestLongPathsCloseOnlyTheirWatchers(t *testing.T) {
	for _, tt := range []struct {
		size, strangers int
		closes          bool
	}{
		{1_040_000, 100, false}, // the clients share the event
		{sharedPath, 100, false},
		{sharedPath, 300, true},
		{longPath, 1000, false},
	} {
		w := newHarness(t, Config{})
		path := "/" + strings.Repeat("x", tt.size-1)
		w.peer.Share = 1
		victim := w.dial()
		victim.want(victim.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		w.peer.Share = 2
		var all []*peer
		for range tt.strangers {
			p := w.dial()
			p.want(p.addWatch(path, wire.AddWatchPersistent), wire.ErrOK, "addWatch")
			all = append(all, p)
		}
		w.dial().send(7, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: openACL()})
		if victim.closed || len(victim.events) != 1 {
			t.Errorf("%d bytes: the victim got %d events, closed is %v", tt.size, len(victim.events), victim.closed)
		}
		closed := 0
		for _, p := range all {
			if p.closed {
				closed++
			}
		}
		if (closed > 0) != tt.closes || closed == tt.strangers {
			t.Errorf("%d bytes: %d of %d strangers are closed", tt.size, closed, tt.strangers)
		}
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
		if _, err := w.tree.checkEventWork(slices.Repeat([]txn{{path: path}}, n)); err != wire.ErrQuotaExceeded {
			t.Errorf("%d events with paths of %d bytes: %s", n*watchers, size, err.Name())
		}
		if _, err := w.tree.checkEventWork(slices.Repeat([]txn{{path: path}}, max(n/4, 1))); err != wire.ErrOK {
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
		if _, err := w.tree.checkEventWork(slices.Repeat([]txn{{op: wire.OpSetData, path: "/a"}}, maxOps)); err != want {
			t.Errorf("%d watches of the children: %s, want %s", watchers, err.Name(), want.Name())
		}
		p.want(p.addWatch("/a", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		var below []txn
		for i := range maxOps / 2 {
			below = append(below, txn{op: wire.OpSetData, path: fmt.Sprint("/a/", i, "/b")}, txn{op: wire.OpSetData, path: fmt.Sprint("/a/", i, "/c")})
		}
		if _, err := w.tree.checkEventWork(below); err != want {
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

// TestEventsOfSessionEndAreComplete: the end of a session is never refused, and every client gets
// all its events, however small the limit of multis is.
func TestEventsOfSessionEndAreComplete(t *testing.T) {
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
		if got := w.tree.nodes.len(); got != 4 || !owner.closed {
			t.Errorf("%d nodes are left, want 4; the owner is closed: %v", got, owner.closed)
		}
		for i, p := range peers {
			if p.closed || len(p.events) != nodes {
				t.Errorf("watcher %d is closed: %v; it got %d of %d events", i, p.closed, len(p.events), nodes)
			}
		}
		w.check()
	}
}

// TestEndOfFewLongPathsIsDoneInParts: the end of a session with a few nodes is one transaction, but
// not if long paths have to be copied for many clients.
func TestEndOfFewLongPathsIsDoneInParts(t *testing.T) {
	const watchers = 100
	w := newHarness(t, Config{})
	owner := w.dial()
	for i := range fewNodes {
		owner.mk("/"+strings.Repeat(string(rune('a'+i)), sharedPath-1), wire.ModeEphemeral)
	}
	var all []*peer
	for i := range watchers {
		w.peer.Share = Share(i + 1)
		p := w.dial()
		p.want(p.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		all = append(all, p)
	}
	owner.send(1, wire.OpCloseSession, nil)
	if n := len(all[0].events); n == fewNodes {
		t.Errorf("one call sent all %d events", n)
	}
	w.runParts()
	for i, p := range all {
		if p.closed || len(p.events) != fewNodes {
			t.Fatalf("watcher %d is closed: %v; it got %d of %d events", i, p.closed, len(p.events), fewNodes)
		}
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
	w.tree.checkEventWork([]txn{{path: "/a/b/c/d"}, {path: "/a/b/c/e"}})
	if !w.tree.nodes.get("/a").extraOrNew().recursiveWatch || w.tree.nodes.get("/a/b").extraOrNew().recursiveWatch {
		t.Error("a node has the mark of a removed recursive watch, or lacks that of an existing one")
	}
	w.check()
}
