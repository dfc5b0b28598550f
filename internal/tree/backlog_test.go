package tree

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// many is a number of nodes that one call cannot remove.
const many = 3 * partSteps / removalSteps

// dialOwner creates a session with many ephemeral nodes.
func (w *harness) dialOwner() *peer {
	w.tb.Helper()
	p := w.dial()
	var ops []wire.MultiOp
	for i := range many {
		ops = append(ops, opCreate(fmt.Sprint("/e", i), wire.ModeEphemeral))
	}
	for part := range slices.Chunk(ops, maxOps) {
		if got := codes(p.multi(part...)); slices.Min(got) != wire.ErrOK {
			w.tb.Fatal("the nodes could not be created")
		}
	}
	return p
}

// runParts calls Tick until it is not due anymore, and returns the number of calls. It fails if a
// call takes more steps than permitted, with those for one node in excess.
func (w *harness) runParts() (n int) {
	w.tb.Helper()
	for {
		if at, ok := w.tree.NextTick(); !ok || at > w.now.Mono {
			return n
		}
		w.tick()
		checkInvariants(w.tb, w.tree)
		if n++; w.tree.steps > partSteps+1000 {
			w.tb.Fatalf("part %d took %d steps, want at most %d", n, w.tree.steps, partSteps)
		}
	}
}

// recordBytes returns the size of the records that flush has not handled yet.
func (w *harness) recordBytes() (size int) {
	for _, rec := range w.out.Records {
		size += len(rec)
	}
	return size
}

// TestSessionEndWithLongPathsIsDoneInParts checks that the records of each part are limited in
// size, and that a client with a recursive watch gets all events.
func TestSessionEndWithLongPathsIsDoneInParts(t *testing.T) {
	const nodes = 40
	w := newHarness(t, Config{})
	p, watcher := w.dial(), w.dial()
	watcher.want(watcher.addWatch("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
	for i := range nodes {
		p.mk(fmt.Sprint("/", i, strings.Repeat("x", 400_000)), wire.ModeEphemeral)
	}
	w.flush()
	watcher.events = nil
	p.send(7, wire.OpCloseSession, nil)
	for parts := 0; ; parts++ {
		if at, ok := w.tree.NextTick(); !ok || at > w.now.Mono {
			break
		}
		if parts > nodes {
			t.Fatalf("the end took more than %d parts", parts)
		}
		w.tree.Tick(w.now, &w.out)
		if size := w.recordBytes(); size > partBytes+1<<20 {
			t.Errorf("part %d made %d bytes of records", parts, size)
		}
		w.flush()
	}
	if !p.closed || watcher.closed || len(watcher.events) != nodes {
		t.Errorf("session closed %v, watcher closed %v, %d events of %d nodes", p.closed, watcher.closed, len(watcher.events), nodes)
	}
}

// TestExpiryDoesNotWaitForBacklog checks that a session expires at its timeout while another
// session ends in parts.
func TestExpiryDoesNotWaitForBacklog(t *testing.T) {
	w := newHarness(t, Config{})
	p, other := w.dialOwner(), w.dial()
	other.mk("/lock", wire.ModeEphemeral)
	w.advance(10 * time.Second)
	p.send(7, wire.OpCloseSession, nil)
	w.tick()
	if got := w.existing("/lock"); len(got) > 0 || !w.tree.backlog.pending() {
		t.Errorf("%v is left, backlog pending: %v", got, w.tree.backlog.pending())
	}
	if w.runParts(); !p.closed {
		t.Error("the other session's end is not complete")
	}
}

// TestShortSessionEndPrecedesLongOne checks that the end of a session with few nodes waits neither
// for that of a session with many nodes nor for the watches of closed connections.
func TestShortSessionEndPrecedesLongOne(t *testing.T) {
	w := newHarness(t, Config{})
	p, closed, other := w.dialOwner(), w.dial(), w.dial()
	// The estimate of the end counts an event for each watch, not for each connection.
	const deep = 100
	dir, watchers := "", make([]*peer, partSteps/fewNodes/eventSteps/deep)
	for i := range watchers {
		watchers[i] = w.dial()
	}
	for range deep {
		dir = other.mk(dir+"/d", 0)
		for _, watcher := range watchers {
			watcher.addWatch(dir, wire.AddWatchPersistentRecursive)
		}
	}
	for i := range 3 * partSteps / watchSteps {
		closed.addWatch(fmt.Sprint("/elsewhere", i), wire.AddWatchPersistent)
	}
	for i := range fewNodes + 1 {
		other.mk(fmt.Sprint(dir, "/", i), wire.ModeEphemeral)
	}
	w.tree.Disconnect(closed.id, w.now)
	for _, s := range []*peer{p, other} {
		s.send(7, wire.OpCloseSession, nil)
	}
	if other.closed {
		t.Fatal("the short end was not done in parts")
	}
	for range 2 {
		w.tick()
	}
	if len(w.tree.backlog.closedConns) == 0 {
		t.Error("the watches of the closed connection were removed first")
	}
	if !other.closed || p.closed {
		t.Errorf("after two parts, the short end is done: %v, the long one: %v", other.closed, p.closed)
	}
	if w.runParts(); !p.closed {
		t.Error("the long end is not complete")
	}
	w.check()
}

// TestShortSessionEndsDoNotStarveLongOne checks that the end of a session with many nodes proceeds
// while sessions with few nodes and long paths keep ending.
func TestShortSessionEndsDoNotStarveLongOne(t *testing.T) {
	const nodes = 2*fewNodes - 1
	w := newHarness(t, Config{})
	p := w.dialOwner()
	p.mk("/d", 0)
	for range partSteps / nodes / eventSteps {
		w.dial().addWatch("/d", wire.AddWatchPersistent)
	}
	var peers []*peer
	for i := range 40 {
		other := w.dial()
		for j := range nodes {
			other.mk(fmt.Sprint("/d/", i, "-", j, strings.Repeat("x", partBytes/(nodes-fewNodes))), wire.ModeEphemeral)
		}
		peers = append(peers, other)
		w.flush()
	}
	end := func(s *peer) { s.send(7, wire.OpCloseSession, nil) }
	end(peers[0])
	end(peers[1])
	end(p)
	for _, other := range peers[2:] {
		end(other)
		w.tick()
		if w.flush(); p.closed {
			if w.tree.backlog.ending == 0 {
				t.Error("the short ends were complete before the long one")
			}
			w.runParts()
			return
		}
	}
	t.Errorf("the long end is not complete after %d shorter ones", len(peers)-w.tree.backlog.ending)
}

// TestLongCloseSessionIsDoneInParts checks that the server answers closeSession after the last
// part, and serves other clients between the parts.
func TestLongCloseSessionIsDoneInParts(t *testing.T) {
	w := newHarness(t, Config{})
	p, other := w.dialOwner(), w.dial()
	p.send(7, wire.OpCloseSession, nil)
	if len(p.replies) != 1 || p.closed { // the reply is that of the creates
		t.Fatalf("answered before the end: %v, closed %v", p.replies, p.closed)
	}
	p.send(8, wire.OpPing, nil)
	q := w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 10_000})
	if q.session != 0 || !q.closed {
		t.Error("a session that ends was resumed")
	}
	w.tick()
	last := fmt.Sprint("/e", many-1)
	other.want(other.remove(last, -1), wire.ErrOK, "delete of a node that ends")
	other.mk(last, wire.ModePersistent)
	if n := w.runParts(); n < 2 {
		t.Errorf("the rest ended in %d parts", n)
	}
	if len(p.replies) != 2 || p.replies[1].Xid != 7 || p.replies[1].Zxid != w.tree.Zxid() || !p.closed {
		t.Errorf("answers %v, closed %v", p.replies, p.closed)
	}
	if c := w.tree.Counts(); c.Ephemerals != 0 || c.Sessions != 1 {
		t.Errorf("left are %+v", c)
	}
	if _, err := other.exists(last, false); err != wire.ErrOK {
		t.Errorf("the node of another session: %v", err)
	}
	w.check()
}

// TestSessionEndContinuesAfterRestart checks that no client can resume a session whose end has
// begun, because some of its nodes may be deleted.
func TestSessionEndContinuesAfterRestart(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		w := newHarness(t, Config{})
		p := w.dialOwner()
		w.advance(10 * time.Second)
		w.tick()
		w.tick()
		if c := w.tree.Counts(); c.Ephemerals == 0 || c.Ephemerals == many || !p.closed {
			t.Fatalf("%d nodes are left in the middle of the end, closed %v", c.Ephemerals, p.closed)
		}
		w.check()
		if w.tree = w.shadow; snapshot {
			w.tree = restored(t, w.shadow.cfg, w.shadow)
		}
		w.shadow = restored(t, w.tree.cfg, w.tree)
		w.tree.StartClocks(w.now)
		q := w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 10_000})
		if q.session != 0 || !q.closed {
			t.Error("a session that ends was resumed")
		}
		if w.runParts(); w.tree.Counts().Ephemerals+w.tree.SessionCount() != 0 {
			t.Errorf("left are %+v", w.tree.Counts())
		}
		w.check()
	}
}

// TestEndingSessionRaisesVersion: a program that does not know sessions that end in parts must
// refuse the data as newer, not as damaged. Development builds wrote the same bytes with version 1.
func TestEndingSessionRaisesVersion(t *testing.T) {
	w := newHarness(t, Config{})
	session, zxid := w.dial().session, w.tree.Zxid()
	live := w.tree.AppendSnapshot(nil)
	end := appendTxn(nil, zxid+1, 0, &txn{op: opEndSession, session: session})
	closed := appendTxn(nil, zxid+2, 0, &txn{op: wire.OpCloseSession, session: session})
	if end[0] != 2 || closed[0] != 1 {
		t.Errorf("records of versions %d and %d, want 2 and 1", end[0], closed[0])
	}
	replay := func(tr *Tree, record []byte) []byte {
		if err := tr.Replay(record); err != nil {
			t.Fatal(err)
		}
		return tr.AppendSnapshot(nil)
	}
	version := len(snapshotMark)
	for _, read := range []byte{1, 2} {
		tr, again := New(Config{}), New(Config{})
		if err := restoreBytes(tr, live); err != nil {
			t.Fatal(err)
		}
		end[0] = read
		ending := replay(tr, end)
		old := bytes.Clone(ending)
		old[version] = read
		if err := restoreBytes(again, old); err != nil || !bytes.Equal(again.AppendSnapshot(nil), ending) {
			t.Errorf("snapshot of version %d gives another state, %v", read, err)
		}
		after := replay(again, closed)
		if live[version] != 1 || ending[version] != 2 || after[version] != 1 {
			t.Errorf("snapshots of versions %d, %d, and %d, want 1, 2, and 1", live[version], ending[version], after[version])
		}
	}
}

// TestWatchesOfClosedConnectionAreRemovedInParts checks that the connection gets no events between
// the parts.
func TestWatchesOfClosedConnectionAreRemovedInParts(t *testing.T) {
	w := newHarness(t, Config{})
	p, other := w.dial(), w.dial()
	for i := range many {
		w.tree.addWatch(fmt.Sprint("/w", i), w.tree.conns[p.id], dataOnce)
	}
	other.addWatch("/", wire.AddWatchPersistentRecursive)
	p.disconnect()
	if n := w.tree.Counts().Watches; n < 2 || n >= many {
		t.Errorf("%d watches are left after the first part", n)
	}
	for i := range 100 {
		other.mk(fmt.Sprint("/w", i), wire.ModePersistent) // a frame for p would fail the test
	}
	if len(other.takeEvents()) != 100 {
		t.Error("the watches of another connection are gone")
	}
	if n := w.runParts(); n < 1 || w.tree.Counts().Watches != 1 || w.tree.Counts().Watchers != 1 {
		t.Errorf("%d parts left %+v", n, w.tree.Counts())
	}
}

// TestWatchesOfManyClosedConnectionsAreRemovedInParts checks that connections that end together
// share one part.
func TestWatchesOfManyClosedConnectionsAreRemovedInParts(t *testing.T) {
	w := newHarness(t, Config{})
	peers := make([]*peer, 8)
	for k := range peers {
		peers[k] = w.dial()
		for i := range partSteps / watchSteps {
			w.tree.addWatch(fmt.Sprint("/w", k, "-", i), w.tree.conns[peers[k].id], dataOnce)
		}
	}
	before := w.tree.Counts().Watches
	for _, p := range peers {
		p.disconnect()
	}
	if n, most := before-w.tree.Counts().Watches, partSteps/watchSteps; n > most {
		t.Errorf("the ends of %d connections removed %d watches at once, want at most %d", len(peers), n, most)
	}
	if n := w.runParts(); n < len(peers)-1 || w.tree.Counts().Watches != 0 {
		t.Errorf("%d parts left %+v", n, w.tree.Counts())
	}
}

// TestSetWatchesIsDoneInParts checks that the server answers after the last part.
func TestSetWatchesIsDoneInParts(t *testing.T) {
	w := newHarness(t, Config{MaxFrame: 8 << 20})
	p, other := w.dial(), w.dial()
	req := wire.SetWatches{RelativeZxid: w.tree.Zxid(), DataWatches: []string{}, ExistWatches: []string{}, ChildWatches: []string{"/"}}
	for i := range many {
		req.ExistWatches = append(req.ExistWatches, fmt.Sprint("/w", i))
	}
	frame := wire.AppendRequest(nil, wire.XidSetWatches, wire.OpSetWatches, &req)[4:]
	more := w.tree.Request(p.id, frame, w.now, &w.out)
	clear(frame) // the Tree must not have kept it
	w.flush()
	parts := 1
	for ; more; parts++ {
		if len(p.replies) > 0 {
			t.Fatal("answered before the end")
		}
		// The part that restores a watch also reports earlier changes of its path.
		other.mk(fmt.Sprint("/w", many-parts), wire.ModeEphemeral)
		more = w.tree.Continue(p.id, w.now, &w.out)
		if w.tree.steps > partSteps+1000 {
			t.Fatalf("a part took %d steps", w.tree.steps)
		}
		w.flush()
	}
	if parts < 3 || len(p.replies) != 1 || p.replies[0].Xid != wire.XidSetWatches || w.tree.Continue(p.id, w.now, &w.out) {
		t.Errorf("%d parts, answers %v", parts, p.replies)
	}
	if want := parts; len(p.events) != want || w.tree.Counts().Watches != many+1-want {
		t.Errorf("%d events and %d watches, want %d and %d", len(p.events), w.tree.Counts().Watches, want, many+1-want)
	}
	w.tree.Request(p.id, wire.AppendRequest(nil, wire.XidSetWatches, wire.OpSetWatches, &req)[4:], w.now, &w.out)
	w.flush()
	p.disconnect()
	w.runParts()
	if w.tree.Continue(p.id, w.now, &w.out) || len(w.tree.watchRestores) != 0 {
		t.Error("a connection that is gone restores watches")
	}
}

// TestSetWatchesCountsSearches: if many connections watch a path, the server searches the watch
// of one connection among all of them.
func TestSetWatchesCountsSearches(t *testing.T) {
	const watchers, paths = 200, 3000
	w := newHarness(t, Config{})
	for range watchers {
		w.dial().exists("/a", true)
	}
	p := w.dial()
	req := wire.SetWatches{RelativeZxid: w.tree.Zxid(), DataWatches: []string{}, ExistWatches: slices.Repeat([]string{"/a"}, paths), ChildWatches: []string{}}
	parts := 1
	for more := w.tree.Request(p.id, wire.AppendRequest(nil, wire.XidSetWatches, wire.OpSetWatches, &req)[4:], w.now, &w.out); more; parts++ {
		more = w.tree.Continue(p.id, w.now, &w.out)
	}
	if w.flush(); parts < watchers/lookedPerStep*paths/partSteps || len(p.replies) != 1 {
		t.Errorf("%d parts, answers %v", parts, p.replies)
	}
}

// TestSessionEndCountsPersistentWatches checks that events count as steps, for watches on the
// nodes of the session and on their parent.
func TestSessionEndCountsPersistentWatches(t *testing.T) {
	const nodes, watchers = 1000, 20
	for _, onNodes := range []bool{false, true} {
		w := newHarness(t, Config{})
		p := w.dial()
		var watching []*peer
		for range watchers {
			q := w.dial()
			q.want(q.addWatch("/", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
			watching = append(watching, q)
		}
		for i := range nodes {
			p.mk(fmt.Sprint("/e", i), wire.ModeEphemeral)
			if onNodes {
				watching[0].want(watching[0].addWatch(fmt.Sprint("/e", i), wire.AddWatchPersistent), wire.ErrOK, "addWatch")
			}
		}
		for _, q := range watching {
			q.takeEvents()
		}
		p.send(7, wire.OpCloseSession, nil)
		if w.tree.steps > partSteps {
			t.Errorf("the first part took %d steps, want at most %d", w.tree.steps, partSteps)
		}
		w.runParts()
		for i, q := range watching {
			want := nodes
			if onNodes && i == 0 {
				want *= 2
			}
			if len(q.events) != want {
				t.Errorf("watcher %d got %d events, want %d", i, len(q.events), want)
			}
		}
		w.check()
	}
}

// TestExpensiveMultisAreRefused checks that the permission checks in a multi are bounded.
func TestExpensiveMultisAreRefused(t *testing.T) {
	w := newHarness(t, Config{MaxFrame: 8 << 20})
	p := w.dial()
	for i := range maxIdentities - 1 {
		p.auth("digest", fmt.Sprint("u", i, ":x"))
	}
	var distinct, same []wire.MultiOp
	for i := range 2 * partSteps / maxIdentities {
		path := fmt.Sprint("/p", i)
		list := append(manyACLs(100), wire.ACL{Perms: wire.PermAll, Scheme: "digest", ID: fmt.Sprint("v", i, ":x")})
		p.want(p.mkACL(path, append(list, allPeers)...), wire.ErrOK, "create")
		distinct = append(distinct, opCheck(path, -1))
		same = append(same, opCheck("/p0", -1))
	}
	if got := codes(p.multi(same...)); slices.Min(got) != wire.ErrOK {
		t.Error("a multi that repeats one permission check is refused")
	}
	got := codes(p.multi(distinct...))
	if at := slices.Index(got, wire.ErrQuotaExceeded); at < len(got)/4 {
		t.Errorf("a multi with that many permission checks is refused at %d of %d", at, len(got))
	}
	most := slices.Repeat([]wire.MultiOp{opCheck("/", -1)}, maxOps)
	if got := codes(p.multi(most...)); slices.Min(got) != wire.ErrOK {
		t.Errorf("a multi of %d checks is refused", maxOps)
	}
	var resp wire.MultiResponse
	p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: append(most, opCheck("/", -1))}, &resp), wire.ErrBadArguments, "a multi of one more")
	w.check()
}

// TestMultisWithManyACLEntriesAreRefused: 40,000 short entries fit into one frame.
func TestMultisWithManyACLEntriesAreRefused(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for scheme, id := range map[string]string{"digest": "%x:%x", "ip": "10.%d.0.%d"} {
		var ops []wire.MultiOp
		for i := range 200 {
			req := &wire.CreateRequest{Path: fmt.Sprint("/", scheme, i)}
			for k := range 200 {
				req.ACL = append(req.ACL, acl(31, scheme, fmt.Sprintf(id, i, k)))
			}
			ops = append(ops, wire.MultiOp{Op: wire.OpCreate, Req: req})
		}
		if got := codes(p.multi(ops...)); !slices.Contains(got, wire.ErrQuotaExceeded) {
			t.Errorf("a multi with %d entries of %s is not refused", 200*len(ops), scheme)
		}
		if got := codes(p.multi(ops[:len(ops)/4]...)); slices.Min(got) != wire.ErrOK {
			t.Errorf("a multi with %d entries of %s is refused: %v", 200*len(ops)/4, scheme, got)
		}
	}
	w.check()
}

// TestManyLongCertificateNamesAreRefused: the names of certificates take long to parse.
func TestManyLongCertificateNamesAreRefused(t *testing.T) {
	const size = 20_000
	w := newHarness(t, Config{AuthProviders: []string{"x509"}})
	p := w.dial()
	var list []wire.ACL
	for i := range 2 * namePerStep * partSteps / size {
		list = append(list, acl(31, "x509", fmt.Sprintf("CN=%s%d", strings.Repeat("a", size), i)))
	}
	p.want(p.mkACL("/a", list...), wire.ErrInvalidACL, "a list of all")
	if most := partSteps + size; w.tree.steps > most {
		t.Errorf("%d steps, want at most %d", w.tree.steps, most)
	}
	p.want(p.mkACL("/a", list[:len(list)/3]...), wire.ErrOK, "a list of some")
	w.check()
}

// TestNodeListAgreesWithModel checks that a list keeps its nodes in order while nodes are removed
// and the list is compacted.
func TestNodeListAgreesWithModel(t *testing.T) {
	var list nodeList
	var model []*node
	root, traversals := new(node), 0
	// A traversal visits once, and in order, each node that stays in the list until its end.
	var cursors [3]struct {
		*nodeCursor
		visited []*node
		want    []*node
	}
	for i := range 100_000 {
		// Waves: the list grows to several blocks and shrinks to none.
		if grow := i/10_000%2 == 0; grow && i%7 != 0 || len(model) == 0 {
			n := &node{parent: root}
			list.add(n)
			model = append(model, n)
		} else {
			at := i * 7919 % len(model)
			n := model[at]
			n.parent, model = nil, slices.Delete(model, at, at+1)
			list.removed()
		}
		for k := range cursors {
			c := &cursors[k]
			if c.nodeCursor == nil {
				c.nodeCursor, c.want, c.visited = list.cursor(), slices.Clone(model), nil
			}
			for range i * (k + 1) % 4 {
				n := c.visit()
				if n != nil {
					c.visited = append(c.visited, n)
					continue
				}
				gone := func(n *node) bool { return n.parent == nil }
				stayed := slices.DeleteFunc(c.want, gone)
				seen := slices.DeleteFunc(c.visited, gone)
				if len(seen) < len(stayed) || !slices.Equal(seen[:len(stayed)], stayed) {
					t.Fatalf("step %d: a traversal visited %d nodes, not the %d that stayed", i, len(seen), len(stayed))
				}
				traversals++
				c.close()
				c.nodeCursor = nil
				break
			}
		}
		if list.len() > 4*(list.count+minRemoved) {
			t.Fatalf("step %d: %d entries for %d nodes", i, list.len(), list.count)
		}
		if i%50 != 0 && len(model) > 100 {
			continue
		}
		if list.count != len(model) || !slices.Equal(slices.Collect(list.all()), model) {
			t.Fatalf("step %d: the list differs from the model", i)
		}
	}
	if traversals < 10 {
		t.Errorf("only %d traversals", traversals)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestNodeListIsNeverCopied checks that a list is not copied when it grows or is traversed: with
// millions of nodes, other clients would wait.
func TestNodeListIsNeverCopied(t *testing.T) {
	const n, bound = 200_000, 400_000
	tr := New(Config{})
	var out Out
	tr.Connect(1, Peer{}, &wire.ConnectRequest{Timeout: 6000}, Now{}, &out)
	s := tr.conns[1].session
	node := &node{parent: tr.root, owner: containerOwner}
	fill := func(l *nodeList) func() {
		return func() {
			for range n {
				l.add(node)
			}
		}
	}
	for _, l := range []*nodeList{&tr.containers, &tr.ttls, &s.ensureOwned().nodeList} {
		if got := allocated(fill(l)); got > 12*n {
			t.Errorf("adding %d nodes allocated %d bytes, want at most %d", n, got, 12*n)
		}
	}
	for name, f := range map[string]func(){
		"a part of a sweep":    func() { tr.sweep(Now{}, &out) },
		"the end of a session": func() { tr.enqueueEnd(s) },
		"a list of ephemeral nodes": func() {
			for range tr.Ephemerals() {
				break
			}
		},
	} {
		if got := allocated(f); got > bound {
			t.Errorf("%s allocated %d bytes, want at most %d", name, got, bound)
		}
	}
}

// TestPathDepthIsBounded checks the limit for each request that creates a node.
func TestPathDepthIsBounded(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for i := 1; i <= maxDepth; i++ {
		p.mk(strings.Repeat("/d", i), wire.ModePersistent)
	}
	bottom := strings.Repeat("/d", maxDepth)
	for _, mode := range []wire.CreateMode{wire.ModePersistent, wire.ModePersistentSequential, wire.ModeEphemeral} {
		_, err := p.create(bottom+"/x", mode)
		p.want(err, wire.ErrBadArguments, "a name too many")
	}
	if got := codes(p.multi(opCreate(bottom+"/x", 0))); got[0] != wire.ErrBadArguments {
		t.Errorf("multi: %v", got)
	}
	p.want(p.set(bottom, "y", -1), wire.ErrOK, "change at the bottom")
	w.check()
}

// TestPathDepthTimesLengthIsBounded: a path of long names may have fewer names, because a change
// looks up the path of each ancestor.
func TestPathDepthTimesLengthIsBounded(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	name := "/" + strings.Repeat("n", 1<<16-1)
	const most = 11 // 11 names of 64 KiB: 11*11*64 KiB are below 8 MiB, 12*12*64 KiB are not
	for i := 1; i <= most; i++ {
		p.mk(strings.Repeat(name, i), wire.ModePersistent)
	}
	_, err := p.create(strings.Repeat(name, most+1), wire.ModePersistent)
	p.want(err, wire.ErrBadArguments, "a name too many for the length")
	p.mk("/"+strings.Repeat("n", 1_000_000), wire.ModePersistent)
	w.check()
}

func TestGetEphemeralsOfManyIsRefused(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for i := range maxListed + 1 {
		_, err := p.create(fmt.Sprint("/e", i), wire.ModeEphemeral)
		p.want(err, wire.ErrOK, "create")
	}
	ask := &wire.GetEphemeralsRequest{PrefixPath: "/e1"}
	p.want(p.ask(wire.OpGetEphemerals, ask, new(wire.GetEphemeralsResponse)), wire.ErrQuotaExceeded, "one too many")
	p.remove("/e0", -1)
	p.want(p.ask(wire.OpGetEphemerals, ask, new(wire.GetEphemeralsResponse)), wire.ErrOK, "the maximum")
}

// TestGetEphemeralsWithLongPrefixIsRefused checks that comparing text counts as steps.
func TestGetEphemeralsWithLongPrefixIsRefused(t *testing.T) {
	const size = 20_000
	w := newHarness(t, Config{})
	p := w.dial()
	long := "/" + strings.Repeat("e", size)
	for i := range partSteps/(size/textPerStep) + 1 {
		p.mk(fmt.Sprint(long, i), wire.ModeEphemeral)
	}
	list := func(prefix string) wire.ErrCode {
		return p.ask(wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: prefix}, new(wire.GetEphemeralsResponse))
	}
	p.want(list(long+"x"), wire.ErrQuotaExceeded, "a long prefix")
	if w.tree.steps > partSteps+1000 {
		t.Errorf("%d steps, want at most %d", w.tree.steps, partSteps)
	}
	p.want(list(long+strings.Repeat("e", 100)), wire.ErrOK, "a prefix longer than the paths")
	p.want(list("/x"), wire.ErrOK, "a short prefix")
}

// TestSearchesCountAsWork checks that a search in a long list counts, even if the answer is short.
func TestSearchesCountAsWork(t *testing.T) {
	const n = 1000
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/hot", wire.ModePersistent)
	for i := range n {
		w.dial().exists("/hot", true)
		p.mk(fmt.Sprint("/e", i), wire.ModeEphemeral)
	}
	p.exists("/hot", true)
	for _, search := range []struct {
		op  wire.OpCode
		req wire.Record
	}{
		{wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: "/x"}},
		{wire.OpExists, &wire.ExistsRequest{Path: "/hot", Watch: true}},
		{wire.OpCheckWatches, &wire.CheckWatchesRequest{Path: "/hot", Type: wire.WatcherData}},
		{wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: "/hot", Type: wire.WatcherData}},
	} {
		p.want(p.call(search.op, search.req).Err, wire.ErrOK, search.op.String())
		if got, want := w.tree.Work(), n/lookedPerStep*stepTime; got < want {
			t.Errorf("%v counts as %v of work, want at least %v", search.op, got, want)
		}
	}
}
