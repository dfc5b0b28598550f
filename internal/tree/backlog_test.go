package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// many is more nodes than end in one call.
const many = 3 * partSteps / removalSteps

// owner makes a session with more ephemeral nodes than end in one call.
func (w *world) owner() *peer {
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

// parts calls Tick as long as it is due at once, and returns how often that was. None
// may take more than its share of steps and those of one node.
func (w *world) parts() (n int) {
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

// The end of a session with many nodes takes several calls. Its client has the answer
// after the last of them, and others may do what they like in between.
func TestLongCloseSessionInParts(t *testing.T) {
	w := newWorld(t, Config{})
	p, other := w.owner(), w.dial()
	p.sendFrame(wire.AppendRequest(nil, 7, wire.OpCloseSession, nil)[4:])
	if len(p.replies) != 1 || p.closed { // the reply is that of the creates
		t.Fatalf("answered before the end: %v, closed %v", p.replies, p.closed)
	}
	p.sendFrame(wire.AppendRequest(nil, 8, wire.OpPing, nil)[4:])
	q := w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 10_000})
	if q.session != 0 || !q.closed {
		t.Error("a session that ends was resumed")
	}
	w.tick()
	last := fmt.Sprint("/e", many-1)
	other.want(other.remove(last, -1), wire.ErrOK, "delete of a node that ends")
	other.mk(last, wire.ModePersistent)
	if n := w.parts(); n < 2 {
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

// A session that has begun to end ends after a restart as well, and no client can
// resume it: some of its nodes may be gone.
func TestLongEndGoesOnAfterARestart(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		w := newWorld(t, Config{})
		p := w.owner()
		w.advance(10 * time.Second)
		w.tick()
		w.tick()
		if c := w.tree.Counts(); c.Ephemerals == 0 || c.Ephemerals == many || !p.closed {
			t.Fatalf("%d nodes are left in the middle of the end, closed %v", c.Ephemerals, p.closed)
		}
		w.check()
		if w.tree = w.shadow; snapshot {
			w.tree = New(w.shadow.cfg)
			if err := w.tree.Restore(w.shadow.AppendSnapshot(nil)); err != nil {
				t.Fatal(err)
			}
		}
		w.shadow = New(w.tree.cfg)
		if err := w.shadow.Restore(w.tree.AppendSnapshot(nil)); err != nil {
			t.Fatal(err)
		}
		w.tree.StartClocks(w.now)
		q := w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 10_000})
		if q.session != 0 || !q.closed {
			t.Error("a session that ends was resumed")
		}
		if w.parts(); w.tree.Counts().Ephemerals+w.tree.SessionCount() != 0 {
			t.Errorf("left are %+v", w.tree.Counts())
		}
		w.check()
	}
}

// The watches of a connection that is gone are removed in parts, and it is told of
// nothing meanwhile.
func TestWatchesGoInParts(t *testing.T) {
	w := newWorld(t, Config{})
	p, other := w.dial(), w.dial()
	for i := range many {
		w.tree.addWatch(fmt.Sprint("/w", i), w.tree.conns[p.id], dataOnce)
	}
	other.lasting("/", wire.AddWatchPersistentRecursive)
	p.hangUp()
	if n := w.tree.Counts().Watches; n < 2 || n >= many {
		t.Errorf("%d watches are left after the first part", n)
	}
	for i := range 100 {
		other.mk(fmt.Sprint("/w", i), wire.ModePersistent) // a frame for p would fail the test
	}
	if len(other.takeEvents()) != 100 {
		t.Error("the watches of another connection are gone")
	}
	if n := w.parts(); n < 1 || w.tree.Counts().Watches != 1 || w.tree.Counts().Watchers != 1 {
		t.Errorf("%d parts left %+v", n, w.tree.Counts())
	}
}

// A long list of watches is restored in parts, and the answer comes with the last.
func TestSetWatchesInParts(t *testing.T) {
	w := newWorld(t, Config{MaxFrame: 8 << 20})
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
		// What happens to a path before its turn comes is told when it does.
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
	p.hangUp()
	w.parts()
	if w.tree.Continue(p.id, w.now, &w.out) || len(w.tree.restoring) != 0 {
		t.Error("a connection that is gone restores watches")
	}
}

// What one change costs above it does not depend on how many are below, and the cost
// of a multi of permissions is bounded.
func TestDearMultisAreRefused(t *testing.T) {
	w := newWorld(t, Config{MaxFrame: 8 << 20})
	p := w.dial()
	for i := range maxIdentities - 1 {
		p.auth("digest", fmt.Sprint("u", i, ":x"))
	}
	var distinct, same []wire.MultiOp
	for i := range 2 * partSteps / maxIdentities {
		path := fmt.Sprint("/p", i)
		list := append(manyACLs(10), wire.ACL{Perms: wire.PermAll, Scheme: "digest", ID: fmt.Sprint("v", i, ":x")})
		p.want(p.mkACL(path, append(list, openACL()...)...), wire.ErrOK, "create")
		distinct = append(distinct, opCheck(path, -1))
		same = append(same, opCheck("/p0", -1))
	}
	if got := codes(p.multi(same...)); slices.Min(got) != wire.ErrOK {
		t.Error("a multi that asks for the same is refused")
	}
	got := codes(p.multi(distinct...))
	if at := slices.Index(got, wire.ErrQuotaExceeded); at < len(got)/4 {
		t.Errorf("a multi that asks for so many permissions is refused at %d of %d", at, len(got))
	}
	most := slices.Repeat([]wire.MultiOp{opCheck("/", -1)}, maxOps)
	if got := codes(p.multi(most...)); slices.Min(got) != wire.ErrOK {
		t.Errorf("a multi of %d checks is refused", maxOps)
	}
	var resp wire.MultiResponse
	p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: append(most, opCheck("/", -1))}, &resp), wire.ErrBadArguments, "a multi of one more")
	w.check()
}

// A list of nodes has what is in the tree, in its order, whatever goes and however
// often it was tidied.
func TestNodeListAgainstModel(t *testing.T) {
	var list nodeList
	var model []*node
	root := new(node)
	for i := range 20_000 {
		// Waves: it grows to some hundred and shrinks to nothing.
		if grow := i/500%2 == 0; grow && i%7 != 0 || len(model) == 0 {
			n := &node{parent: root}
			list.add(n)
			model = append(model, n)
		} else {
			at := i * 7919 % len(model)
			n := model[at]
			n.parent, model = nil, slices.Delete(model, at, at+1)
			list.removed()
		}
		live := slices.DeleteFunc(list.copy(), func(n *node) bool { return n.parent == nil })
		if list.live != len(model) || !slices.Equal(slices.Collect(list.all()), model) || !slices.Equal(live, model) {
			t.Fatalf("step %d: the list differs from the model", i)
		}
		if len(list.nodes) > 4*(list.live+spareNodes) {
			t.Fatalf("step %d: %d entries for %d nodes", i, len(list.nodes), list.live)
		}
	}
}

// Paths have an end to their names, however they come.
func TestDepthIsBounded(t *testing.T) {
	w := newWorld(t, Config{})
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

// A path of long names has fewer of them: a change looks up the path of each node above.
func TestDepthOfLongPathsIsBounded(t *testing.T) {
	w := newWorld(t, Config{})
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

// A session with too many nodes to look at them all is refused the list.
func TestGetEphemeralsOfManyIsRefused(t *testing.T) {
	w := newWorld(t, Config{})
	p := w.dial()
	for i := range maxListed + 1 {
		_, err := p.create(fmt.Sprint("/e", i), wire.ModeEphemeral)
		p.want(err, wire.ErrOK, "create")
	}
	ask := &wire.GetEphemeralsRequest{PrefixPath: "/e1"}
	p.want(p.ask(wire.OpGetEphemerals, ask, new(wire.GetEphemeralsResponse)), wire.ErrQuotaExceeded, "one too many")
	p.remove("/e0", -1)
	p.want(p.ask(wire.OpGetEphemerals, ask, new(wire.GetEphemeralsResponse)), wire.ErrOK, "as many as may be")
}
