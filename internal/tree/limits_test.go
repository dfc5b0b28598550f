package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// wantRefused fails unless the counter of refused requests has the wanted value.
func wantRefused(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%d requests refused for %s, want %d", got, what, want)
	}
}

func TestMaxNodes(t *testing.T) {
	w := newHarness(t, Config{MaxNodes: 7}) // four exist initially
	p := w.dial()
	for _, path := range []string{"/a", "/b", "/c"} {
		p.mk(path, wire.ModePersistent)
	}
	_, err := p.create("/d", wire.ModePersistent)
	p.want(err, wire.ErrQuotaExceeded, "one node too many")
	p.want(p.set("/a", "changes", -1), wire.ErrOK, "a change at the limit")
	p.want(p.remove("/a", -1), wire.ErrOK, "a deletion at the limit")
	p.mk("/d", wire.ModeEphemeral)
	wantRefused(t, "nodes", w.tree.Counters().RefusedNodes, 1)
	p.call(wire.OpCloseSession, nil)
	if n := w.tree.Counts().Nodes; n != 6 {
		t.Errorf("%d nodes after a session ended at the limit, want 6", n)
	}
	w.check() // a replay refuses nothing
}

// TestMultiMayUseSpaceThatItFrees checks that a multi at the limit may delete and create nodes.
func TestMultiMayUseSpaceThatItFrees(t *testing.T) {
	w := newHarness(t, Config{MaxNodes: 6})
	p := w.dial()
	p.mk("/a", wire.ModePersistent)
	p.mk("/b", wire.ModePersistent)
	create := func(path string) wire.MultiOp { return opCreate(path, wire.ModePersistent) }
	del := func(path string) wire.MultiOp { return opDelete(path, -1) }
	for _, test := range []struct {
		ops    []wire.MultiOp
		failed int // index of the failed operation, or -1
	}{
		{[]wire.MultiOp{create("/c"), del("/a")}, -1},
		{[]wire.MultiOp{del("/c"), create("/d"), create("/e")}, 2},
		{[]wire.MultiOp{create("/e"), del("/e"), del("/b"), create("/e")}, -1},
		{[]wire.MultiOp{create("/f")}, 0},
	} {
		var resp wire.MultiResponse
		p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: test.ops}, &resp), wire.ErrOK, "multi")
		for i, res := range resp.Results {
			want := wire.ErrOK
			switch {
			case test.failed >= 0 && i == test.failed:
				want = wire.ErrQuotaExceeded
			case test.failed >= 0 && i > test.failed:
				want = wire.ErrRuntimeInconsistency
			}
			if res.Err != want {
				t.Errorf("operation %d: %v, want %v", i, res.Err, want)
			}
		}
	}
	w.check()
}

func TestMaxData(t *testing.T) {
	const most = 10_000
	w := newHarness(t, Config{MaxData: most})
	p := w.dial()
	p.mk("/a", wire.ModePersistent)
	p.want(p.set("/a", strings.Repeat("x", 9000), -1), wire.ErrOK, "data within the limit")
	p.want(p.set("/a", strings.Repeat("x", 11_000), -1), wire.ErrQuotaExceeded, "data beyond the limit")
	_, err := p.create("/"+strings.Repeat("n", 900), wire.ModePersistent)
	p.want(err, wire.ErrQuotaExceeded, "a long name")
	_, _, err = p.get("/a", true)
	p.want(err, wire.ErrOK, "a watch on a short path")
	_, err = p.exists("/"+strings.Repeat("n", 900), true)
	p.want(err, wire.ErrQuotaExceeded, "a watch on a path with more than half of the bytes for watched paths")
	p.want(p.mkACL("/l", manyACLs(20)...), wire.ErrQuotaExceeded, "a long list")
	if used := w.tree.used(); used > most {
		t.Errorf("%d bytes are used, the limit is %d", used, most)
	}
	p.want(p.set("/a", "", -1), wire.ErrOK, "less data")
	p.want(p.mkACL("/l", manyACLs(20)...), wire.ErrOK, "a long list within the limit")
	p.want(p.remove("/l", -1), wire.ErrOK, "a deletion")
	wantRefused(t, "data", w.tree.Counters().RefusedData, 3)
	p.disconnect()
	// Only the initial nodes, and /a with its list, are left.
	if left := w.tree.used() - (newHarness(t, Config{}).tree.used() + int64(len("/a"))); left != 0 {
		t.Errorf("%d bytes of removed nodes and watches are still counted", left)
	}
	w.check()
}

// TestDuplicateACLEntriesTakeNoMemory creates nodes with lists that have one entry many times.
func TestDuplicateACLEntriesTakeNoMemory(t *testing.T) {
	const nodes, entries = 50, 10_000
	w := newHarness(t, Config{})
	p := w.dial()
	before, steps := heapSize(), 0
	for i := range nodes {
		list := slices.Repeat([]wire.ACL{acl(31, "digest", fmt.Sprintf("u%d:x", i))}, entries)
		p.want(p.mkACL(fmt.Sprint("/", i), list...), wire.ErrOK, "create")
		steps += w.tree.steps
	}
	if kept := heapSize() - before; kept > 4<<20 {
		t.Errorf("%d bytes are in use, counted are %d", kept, w.tree.used())
	}
	if want := nodes * entries * entrySteps; steps < want {
		t.Errorf("%d steps, want at least %d", steps, want)
	}
	w.check()
}

// TestSetACLAtDataLimit checks that a client at the limit can shorten a list, use an existing
// list, and replace the only use of a list.
func TestSetACLAtDataLimit(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	set := func(path string, list []wire.ACL) wire.ErrCode {
		list = append(list, openACL()...)
		return p.ask(wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: list, Version: -1}, new(wire.SetACLResponse))
	}
	for _, path := range []string{"/own", "/one", "/other"} {
		p.mk(path, wire.ModePersistent)
	}
	p.want(set("/own", manyACLs(10)), wire.ErrOK, "a list of its own")
	p.want(set("/one", manyACLs(12)), wire.ErrOK, "a list of two")
	p.want(set("/other", manyACLs(12)), wire.ErrOK, "a list of two")
	w.tree.cfg.MaxData = w.tree.used()
	p.want(set("/one", manyACLs(9)), wire.ErrQuotaExceeded, "one more list")
	p.want(set("/own", manyACLs(9)), wire.ErrOK, "a shorter list")
	p.want(set("/own", manyACLs(12)), wire.ErrOK, "an existing list")
	p.want(set("/own", manyACLs(10)), wire.ErrOK, "a list of the same size as the first")
	p.want(set("/own", manyACLs(10)), wire.ErrOK, "the same list")
	if used := w.tree.used(); used > w.tree.cfg.MaxData {
		t.Errorf("%d bytes are used, the limit is %d", used, w.tree.cfg.MaxData)
	}
	w.check()
}

// manyACLs returns a list of n entries.
func manyACLs(n int) []wire.ACL {
	list := make([]wire.ACL, n)
	for i := range list {
		list[i] = wire.ACL{Perms: wire.PermAll, Scheme: "ip", ID: fmt.Sprintf("10.0.%d.%d", i>>8, i&255)}
	}
	return list
}

func TestMaxWatches(t *testing.T) {
	w := newHarness(t, Config{MaxWatches: 5, MaxWatchesPerConn: 3})
	p, q := w.dial(), w.dial()
	for i := range 3 {
		_, err := p.exists(fmt.Sprint("/", i), true)
		p.want(err, wire.ErrNoNode, "a watch within the limit")
	}
	_, err := p.exists("/3", true)
	p.want(err, wire.ErrQuotaExceeded, "more than the limit of one connection")
	_, err = p.exists("/0", true)
	p.want(err, wire.ErrNoNode, "an existing watch")
	p.want(q.addWatch("/", wire.AddWatchPersistent), wire.ErrOK, "two watches")
	_, err = q.children("/", true)
	q.want(err, wire.ErrOK, "another kind on a watched path")
	_, err = q.exists("/q", true)
	q.want(err, wire.ErrQuotaExceeded, "more than the limit of all connections")
	p.mk("/0", wire.ModePersistent) // fires one
	_, err = q.exists("/q", true)
	q.want(err, wire.ErrNoNode, "a watch after another one fired")
	if n := w.tree.Counts().Watches; n > 5 {
		t.Errorf("%d watches, the limit is 5", n)
	}
	wantRefused(t, "watches", w.tree.Counters().RefusedWatches, 2)
}

// TestSetWatchesBeyondLimitClosesConnection: a client relies on its restored watches, so the
// server must not restore only some of them.
func TestSetWatchesBeyondLimitClosesConnection(t *testing.T) {
	w := newHarness(t, Config{MaxWatches: 3})
	p := w.dial()
	req := wire.SetWatches{DataWatches: []string{}, ExistWatches: []string{"/a", "/b", "/c", "/d"}, ChildWatches: []string{}}
	p.sendFrame(wire.AppendRequest(nil, wire.XidSetWatches, wire.OpSetWatches, &req)[4:])
	if !p.closed {
		t.Error("the connection is open without all of its watches")
	}
	if n := w.tree.Counts().Watches; n != 0 {
		t.Errorf("%d watches of a closed connection are left", n)
	}
	if w.tree.SessionCount() != 1 {
		t.Error("the session ended with the connection")
	}
}

// TestMaxSessionsCountsLocalSessions: the log of a read-only server does not contain its local
// sessions, but they count.
func TestMaxSessionsCountsLocalSessions(t *testing.T) {
	w, _ := newReadOnlyHarness(t)
	w.tree.cfg.MaxSessions = 2
	req := &wire.ConnectRequest{Timeout: 10_000, ReadOnly: true, HasReadOnly: true}
	if p := w.dialRaw(req); p.session == 0 {
		t.Error("no session within the limit")
	}
	if p := w.dialRaw(req); p.session != 0 || !p.closed {
		t.Error("a session beyond the limit")
	}
	wantRefused(t, "sessions", w.tree.Counters().RefusedSessions, 1)
}

func TestMaxSessions(t *testing.T) {
	w := newHarness(t, Config{MaxSessions: 2})
	p := w.dial()
	w.dial()
	refused := w.dialRaw(&wire.ConnectRequest{Timeout: 10_000})
	if !refused.closed || len(refused.raw) != 0 {
		t.Errorf("a third session: closed %v, %d answers", refused.closed, len(refused.raw))
	}
	p.call(wire.OpCloseSession, nil)
	w.dial()
	wantRefused(t, "sessions", w.tree.Counters().RefusedSessions, 1)
}

func TestMaxReply(t *testing.T) {
	w := newHarness(t, Config{MaxReply: 2000})
	p := w.dial()
	p.mk("/a", wire.ModePersistent)
	p.want(p.set("/a", strings.Repeat("x", 1500), -1), wire.ErrOK, "set")
	_, _, err := p.get("/a", false)
	p.want(err, wire.ErrOK, "an answer within the limit")
	get := wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/a"}}
	p.want(p.ask(wire.OpMultiRead, &wire.MultiReadRequest{Ops: []wire.MultiOp{get}}, new(wire.MultiResponse)), wire.ErrOK, "one read")
	p.want(p.ask(wire.OpMultiRead, &wire.MultiReadRequest{Ops: []wire.MultiOp{get, get}}, new(wire.MultiResponse)), wire.ErrQuotaExceeded, "two reads")
	p.want(p.set("/a", strings.Repeat("x", 3000), -1), wire.ErrOK, "set")
	_, _, err = p.get("/a", false)
	p.want(err, wire.ErrQuotaExceeded, "an answer beyond the limit")
	for i := range 50 {
		p.mk(fmt.Sprintf("/%s%d", strings.Repeat("c", 50), i), wire.ModeEphemeral)
	}
	_, err = p.children("/", false)
	p.want(err, wire.ErrQuotaExceeded, "a list of children")
	p.want(p.ask(wire.OpGetEphemerals, &wire.GetEphemeralsRequest{}, new(wire.GetEphemeralsResponse)), wire.ErrQuotaExceeded, "a list of ephemerals")
	wantRefused(t, "replies", w.tree.Counters().RefusedReplies, 4)
}

// TestTenThousandLongNamesAreListed: tests of other clients list that many names. A name counts
// for more than its bytes, because many short names take longer.
func TestTenThousandLongNamesAreListed(t *testing.T) {
	const n = 10_000
	p := newHarness(t, Config{}).dial()
	p.mk("/a", wire.ModePersistent)
	for i := range n {
		p.mk(fmt.Sprintf("/a/%s%d", strings.Repeat("c", 2000), i), wire.ModePersistent)
	}
	names, err := p.children("/a", false)
	if p.want(err, wire.ErrOK, "a list of 20 MB"); len(names) != n {
		t.Errorf("%d names", len(names))
	}
	q := newHarness(t, Config{MaxReply: 1000}).dial()
	for i := range 60 {
		q.mk(fmt.Sprint("/", i), wire.ModePersistent)
	}
	_, err = q.children("/", false)
	q.want(err, wire.ErrQuotaExceeded, "60 short names with MaxReply 1000")
}

// TestWriteAnswersIgnoreMaxReply checks that a successful write returns no error, even if its
// answer is long.
func TestWriteAnswersIgnoreMaxReply(t *testing.T) {
	p := newHarness(t, Config{MaxReply: 100}).dial()
	path := "/" + strings.Repeat("n", 200)
	if got := p.mk(path, wire.ModePersistent); got != path {
		t.Errorf("created %q", got)
	}
	var resp wire.MultiResponse
	p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{opCreate(path+"1", 0), opCreate(path+"2", 0)}}, &resp), wire.ErrOK, "multi")
	_, err := p.children("/", false)
	p.want(err, wire.ErrQuotaExceeded, "a read")
}

func TestIdentitiesAreBounded(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	added := 0
	for ; !p.closed && added < 2*maxIdentities; added++ {
		p.auth("digest", fmt.Sprint("user", added, ":p"))
	}
	// The address is one identity, and the server refuses the last one.
	if added != maxIdentities {
		t.Errorf("%d identities were accepted, want %d", added, maxIdentities)
	}
	q := w.dial()
	if q.auth("digest", strings.Repeat("u", maxIdentityBytes)+":p"); !q.closed {
		t.Error("an identity has no limit")
	}
	r := w.dial()
	for n := 0; !r.closed; n++ {
		if n > 3 {
			t.Fatal("all identities together have no limit")
		}
		r.auth("digest", strings.Repeat("u", maxIdentityBytes/3)+fmt.Sprint(n, ":p"))
	}
}

func TestACLLengthIsLimited(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.want(p.mkACL("/a", append(manyACLs(20), manyACLs(20)...)...), wire.ErrOK, "each entry twice")
	if n := len(w.tree.acls.of(w.tree.nodes.get("/a")).list); n != 20 {
		t.Errorf("%d entries are stored, want 20", n)
	}
	p.want(p.mkACL("/b", manyACLs(maxACL+1)...), wire.ErrInvalidACL, "too many entries")
}

// TestStateAboveLoweredLimitsIsRestored restores a state that was created under higher limits. It
// must be complete, and clients must be able to reduce it.
func TestStateAboveLoweredLimitsIsRestored(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for i := range 20 {
		p.mk(fmt.Sprint("/n", i), wire.ModePersistent)
		w.dial()
	}
	p.want(p.mkACL("/l", append(manyACLs(200), openACL()...)...), wire.ErrOK, "a long list")
	low := Config{MaxNodes: 1, MaxData: 1, MaxSessions: 1, MaxFrame: 64, MaxWatches: 1}
	replayed, fresh := New(low), restored(t, low, w.tree)
	for _, rec := range w.logged {
		if err := replayed.Replay(rec); err != nil {
			t.Fatalf("replay: %v", err)
		}
	}
	if want := hashOf(w.tree); hashOf(replayed) != want || hashOf(fresh) != want {
		t.Fatal("the restored state differs")
	}
	w.tree, w.shadow = replayed, fresh
	w.tree.StartClocks(w.now)
	p = w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 10_000})
	if p.session == 0 {
		t.Fatal("an existing session can't be resumed")
	}
	p.want(p.set("/n0", "", -1), wire.ErrOK, "less data")
	p.want(p.remove("/n0", -1), wire.ErrOK, "a deletion")
	p.want(p.set("/n1", "more", -1), wire.ErrQuotaExceeded, "more data")
	w.check()
}

// TestAddressesShareWatches checks that connections and addresses that set as many watches as
// possible leave some for clients that need few, unless the limit per connection is set.
func TestAddressesShareWatches(t *testing.T) {
	const most, few, reserved = 16_384, 16_384 / fewPart, 16_384 / reservedPart
	take := func(p *peer, want int) (n int) {
		for ; n < want; n++ {
			if _, err := p.exists(fmt.Sprint("/", p.id, "-", n), true); err == wire.ErrQuotaExceeded {
				return n
			}
		}
		return n
	}
	w := newHarness(t, Config{MaxWatches: most})
	for i := range 40 {
		// Two connections of each address share its watches.
		w.peer = Peer{Share: Share(1 + i/2)}
		if n := take(w.dial(), most); i == 0 && n != (most-reserved)/2 {
			t.Errorf("the only connection got %d watches, want half of what is not reserved", n)
		} else if i == 1 && n != few {
			t.Errorf("the second connection of a greedy address got %d watches, want %d", n, few)
		}
	}
	if left := most - w.tree.Counts().Watches; left < reserved-40*few {
		t.Errorf("greedy connections left %d watches, want the %d that are reserved", left, reserved)
	}
	for i := range 100 {
		w.peer = Peer{Share: Share(1 + i%3)}
		if n := take(w.dial(), few); n != few {
			t.Fatalf("modest client %d got %d watches, want %d", i, n, few)
		}
	}

	w = newHarness(t, Config{MaxWatches: 100, MaxWatchesPerConn: 100})
	if n := take(w.dial(), 200); n != 100 {
		t.Errorf("a connection without an address got %d watches, its limit is 100", n)
	}
}

// TestAllKindsOfWatchesCount checks that each kind of watch on a path counts.
func TestAllKindsOfWatchesCount(t *testing.T) {
	const most = 16_384
	w := newHarness(t, Config{MaxWatches: most})
	w.peer = Peer{Share: 1}
	p := w.dial()
	for _, mode := range []wire.AddWatchMode{wire.AddWatchPersistent, wire.AddWatchPersistentRecursive} {
		for i := range most {
			if p.addWatch(fmt.Sprint("/", i), mode) == wire.ErrQuotaExceeded {
				break
			}
		}
	}
	if n, want := w.tree.Counts().Watches, (most-most/reservedPart)/2; n != want {
		t.Errorf("one connection has %d watches, want %d", n, want)
	}
}

// TestWatchedPathsAreBounded: setting a watch needs no permission. Long watched paths must not use
// up the space for data, nor the space for watched paths of other addresses.
func TestWatchedPathsAreBounded(t *testing.T) {
	const most, length = 1 << 20, 1 << 10
	w := newHarness(t, Config{MaxData: most})
	taken := 0
	for i := range 400 { // connections, two of each address
		w.peer = Peer{Share: Share(1 + i/2)}
		p := w.dial()
		for n := range 200 {
			path := fmt.Sprint("/", i, "-", n, "-", strings.Repeat("x", length))
			if _, err := p.exists(path, true); err == wire.ErrQuotaExceeded {
				break
			}
			taken += len(path)
		}
		if i == 1 && (taken > most/pathsPart/2 || taken < most/pathsPart/3) {
			t.Errorf("one address watches paths of %d bytes, want a little less than half of %d", taken, most/pathsPart)
		}
	}
	if taken > most/pathsPart-most/pathsPart/reservedPart {
		t.Errorf("watched paths take %d bytes, want less than an eighth of %d", taken, most/pathsPart)
	}
	w.peer = Peer{Share: 1000}
	modest := w.dial()
	if _, err := modest.exists("/modest", true); err != wire.ErrNoNode {
		t.Errorf("a modest client's watch: %v", err)
	}
	if err := modest.make("/data", strings.Repeat("x", most-most/pathsPart)); err != wire.ErrOK {
		t.Errorf("data: %v", err)
	}
}

// TestAddressesShareSessions checks that an address gets at most as many sessions as stay free for
// other addresses, and that a session that ends does not count anymore.
func TestAddressesShareSessions(t *testing.T) {
	const most = 80
	w := newHarness(t, Config{MaxSessions: most})
	dial := func(share Share) *peer {
		w.peer = Peer{Share: share}
		return w.dialRaw(&wire.ConnectRequest{Timeout: 10_000})
	}
	var got []*peer
	for range most {
		if p := dial(1); p.session != 0 {
			got = append(got, p)
		}
	}
	if want := (most - most/reservedPart) / 2; len(got) != want {
		t.Fatalf("one address has %d sessions of %d, want %d", len(got), most, want)
	}
	if p := dial(2); p.session == 0 {
		t.Error("another address got no session")
	}
	got[0].call(wire.OpCloseSession, nil)
	got[1].call(wire.OpCloseSession, nil)
	if p := dial(1); p.session == 0 {
		t.Error("a session that ended still counts")
	}
}
