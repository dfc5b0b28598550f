package tree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

func TestSessionIDsIncrease(t *testing.T) {
	for _, wall := range []int64{0, -1, 1_700_000_000_000, 1 << 40, 1<<63 - 1, -1 << 63} {
		w := newHarness(t, Config{ServerID: 127})
		w.now.Wall = wall
		last := int64(0)
		for range 5 {
			id := w.dial().session
			if id <= last || id>>56 != 127 || kindOf(id) != ephemeral {
				t.Errorf("wall %d: id %#x after %#x", wall, id, last)
			}
			last = id
		}
	}
	for _, id := range []int{-1, 0, 128, 255} {
		if got := newHarness(t, Config{ServerID: id}).dial().session >> 56; got != 1 {
			t.Errorf("server id %d gives top byte %#x", id, got)
		}
	}
}

func TestSessionIDsIncreaseAfterRestart(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.call(wire.OpCloseSession, nil)
	w.check()
	// The wall clock is a day behind after the restart.
	w.tree, w.now.Wall = w.shadow, w.now.Wall-86_400_000
	w.shadow = restored(t, w.tree.cfg, w.tree)
	if q := w.dial(); q.session <= p.session {
		t.Errorf("id %#x after %#x", q.session, p.session)
	}
	w.check()
}

func TestSessionExpiresExactlyAtTimeout(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/e", wire.ModeEphemeral)
	w.advance(3 * time.Second)
	p.call(wire.OpPing, nil) // restarts the timeout
	w.advance(10*time.Second - time.Nanosecond)
	w.tick()
	if w.tree.Counts().Sessions != 1 {
		t.Fatal("expired a nanosecond early")
	}
	if at, ok := w.tree.NextTick(); !ok || at != w.now.Mono+1 {
		t.Fatalf("next tick in %v", at-w.now.Mono)
	}
	zxid := w.tree.Zxid()
	w.advance(time.Nanosecond)
	w.tick()
	if w.tree.Counts().Sessions != 0 || w.tree.Counts().Nodes != 4 || !p.closed {
		t.Error("not expired a timeout after the last request")
	}
	if w.tree.Zxid() != zxid+1 {
		t.Errorf("expiry took %d transactions", w.tree.Zxid()-zxid)
	}
	if len(p.replies) != 1 {
		t.Error("the server sent a frame to the expired connection")
	}
	if _, ok := w.tree.NextTick(); ok {
		t.Error("a tick is due with nothing to do")
	}
	w.check()
}

func TestEveryRequestKeepsSessionAlive(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for name, send := range map[string]func(){
		"ping":      func() { p.call(wire.OpPing, nil) },
		"read":      func() { p.get("/", false) },
		"failure":   func() { p.remove("/none", -1) },
		"auth":      func() { p.auth("digest", "a:b") },
		"malformed": func() { p.call(wire.OpGetData, nil) },
	} {
		w.advance(9 * time.Second)
		send()
		w.advance(9 * time.Second)
		w.tick()
		if p.closed {
			t.Fatalf("%s: the session expired", name)
		}
	}
}

func TestSessionSurvivesItsConnection(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/e", wire.ModeEphemeral)
	p.disconnect()
	w.advance(9 * time.Second)
	w.tick()
	q := w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 10_000})
	if q.session != p.session {
		t.Fatal("the session ended with its connection")
	}
	w.advance(9 * time.Second)
	w.tick()
	if _, err := q.exists("/e", false); err != wire.ErrOK {
		t.Errorf("ephemeral node: %v", err)
	}
}

// TestShorterTimeoutTakesEffectOnResume: the session must move forward in the heap of deadlines.
func TestShorterTimeoutTakesEffectOnResume(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dialRaw(&wire.ConnectRequest{Timeout: 60_000})
	other := w.dialRaw(&wire.ConnectRequest{Timeout: 30_000})
	w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 6_000})
	w.advance(6 * time.Second)
	w.tick()
	if got := w.tree.Sessions(); len(got) != 1 || got[0].ID != other.session {
		t.Errorf("sessions %+v", got)
	}
}

func TestStartClocksGivesFullTimeout(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	w.advance(9 * time.Second)
	fresh := restored(t, w.tree.cfg, w.tree)
	if _, ok := fresh.NextTick(); ok {
		t.Error("clocks run before StartClocks")
	}
	start := Now{Mono: time.Second} // the clock of another process
	fresh.StartClocks(start)
	var out Out
	fresh.Tick(Now{Mono: 11*time.Second - 1}, &out)
	if fresh.Counts().Sessions != 1 {
		t.Error("the session expired before its timeout after the restart")
	}
	fresh.Tick(Now{Mono: 11 * time.Second}, &out)
	if fresh.Counts().Sessions != 0 {
		t.Errorf("session %#x did not expire at its timeout", p.session)
	}
}

func TestCloseSessionDeletesEphemeralNodes(t *testing.T) {
	w := newHarness(t, Config{})
	p, q := w.dial(), w.dial()
	p.mk("/dir", wire.ModePersistent)
	p.mk("/dir/b", wire.ModeEphemeral)
	p.mk("/dir/a", wire.ModeEphemeral)
	p.mk("/keep", wire.ModePersistent)
	p.exists("/dir/a", true)
	for _, path := range []string{"/dir/a", "/dir/b"} {
		q.exists(path, true)
	}
	q.children("/dir", true)
	zxid := w.tree.Zxid()
	r := p.call(wire.OpCloseSession, nil)
	if r.Zxid != zxid+1 || w.tree.Zxid() != zxid+1 || r.Err != wire.ErrOK || !p.closed {
		t.Errorf("answer %+v, closed %v", r, p.closed)
	}
	p.wantEvents("deleted /dir/a")
	q.wantEvents("deleted /dir/b", "children /dir", "deleted /dir/a")
	if got := w.tree.Paths(); !slices.Equal(got, []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/dir", "/keep"}) {
		t.Errorf("left: %q", got)
	}
	if stat, _ := q.exists("/dir", false); stat.Pzxid != zxid+1 || stat.Cversion != 4 {
		t.Errorf("parent's stat %+v", stat)
	}
	if again := w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password}); again.session != 0 {
		t.Error("a closed session was resumed")
	}
	w.check()
}

func TestFramesAfterSessionEndAreIgnored(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.call(wire.OpCloseSession, nil)
	zxid := w.tree.Zxid()
	p.send(9, wire.OpCreate, &wire.CreateRequest{Path: "/late", ACL: openACL()})
	w.tree.Disconnect(p.id, w.now)
	if w.tree.Zxid() != zxid {
		t.Error("a request ran after its session's end")
	}
}

// TestExpiryAgreesWithLinearSearch compares the heap of deadlines with a map under random requests.
func TestExpiryAgreesWithLinearSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	w := newHarness(t, Config{MinTimeout: 10, MaxTimeout: 1000})
	deadline := make(map[*peer]time.Duration)
	for range 5000 {
		switch rng.IntN(4) {
		case 0:
			p := w.dialRaw(&wire.ConnectRequest{Timeout: rng.Int32N(1000)})
			deadline[p] = w.now.Mono + time.Duration(p.timeout)*time.Millisecond
		case 1:
			if p := w.peers[ConnID(rng.Int64N(int64(w.lastID)+1))]; p != nil && !p.closed {
				p.call(wire.OpPing, nil)
				deadline[p] = w.now.Mono + time.Duration(p.timeout)*time.Millisecond
			}
		default:
			w.advance(time.Duration(rng.IntN(30)) * time.Millisecond)
			w.tick()
			for p, at := range deadline {
				if expired := at <= w.now.Mono; expired != p.closed {
					t.Fatalf("deadline %v from now: closed %v", at-w.now.Mono, p.closed)
				}
				if p.closed {
					delete(deadline, p)
				}
			}
		}
		if at, ok := w.tree.NextTick(); ok {
			for _, d := range deadline {
				if at > d {
					t.Fatal("next tick comes after a deadline")
				}
			}
		}
	}
	w.check()
}

// TestKeepAliveExtendsSession: KeepAlive extends a session before its request is handled.
func TestKeepAliveExtendsSession(t *testing.T) {
	w := newHarness(t, Config{MinTimeout: 1000})
	heard, silent := w.dial(), w.dial()
	for range 3 {
		w.advance(time.Duration(heard.timeout) * time.Millisecond * 2 / 3)
		w.tree.KeepAlive(heard.id, w.now)
		w.tick()
	}
	w.tree.KeepAlive(silent.id, w.now) // has no session anymore
	if heard.closed || !silent.closed || w.tree.SessionCount() != 1 {
		t.Errorf("heard: closed %v; silent: closed %v; %d sessions", heard.closed, silent.closed, w.tree.SessionCount())
	}
}

// TestDeadlinesAreUpdatedInParts checks that Tick works in parts if the deadlines of many sessions
// are due at the same time.
func TestDeadlinesAreUpdatedInParts(t *testing.T) {
	w := newHarness(t, Config{})
	s := w.dial().session
	for i := range partSteps {
		w.tree.addSession(s+int64(i)+1, 10_000, nil)
	}
	w.tree.StartClocks(w.now)
	due := w.now
	for _, x := range w.tree.sessions {
		w.tree.touch(x, Now{Mono: due.Mono + time.Second})
	}
	due.Mono += 10 * time.Second
	parts := 0
	for at, ok := w.tree.NextTick(); ok && at <= due.Mono; at, ok = w.tree.NextTick() {
		w.tree.Tick(due, &w.out)
		parts++
	}
	if got := w.tree.Counts().Sessions; got != partSteps+1 || parts < 2 {
		t.Errorf("%d sessions after %d parts, want all of %d after at least 2", got, parts, partSteps+1)
	}
}

// TestFewNodesEndInPartsIfManyClientsWatch checks that the end of a session with few nodes is one
// transaction, unless it causes too many events or permission checks.
func TestFewNodesEndInPartsIfManyClientsWatch(t *testing.T) {
	const nodes = fewNodes
	for _, tt := range []struct {
		name                 string
		watchers, identities int
		mode                 wire.AddWatchMode
		entries              int
		parts                bool
	}{
		{"few watchers", 100, 0, wire.AddWatchPersistent, 0, false},
		{"many watchers", partSteps*2/nodes/eventSteps + 1, 0, wire.AddWatchPersistent, 0, true},
		{"many recursive watchers", partSteps*2/nodes/eventSteps + 1, 0, wire.AddWatchPersistentRecursive, 0, true},
		{"many identities", 100, 60, wire.AddWatchPersistent, 0, false},
		{"many identities, long lists", 100, 60, wire.AddWatchPersistent, 2000, true},
	} {
		w := newHarness(t, Config{})
		owner := w.dial()
		list := append(manyACLs(tt.entries), openACL()...)
		owner.want(owner.mkACL("/p", list...), wire.ErrOK, "create")
		for i := range nodes {
			req := &wire.CreateRequest{Path: fmt.Sprint("/p/", i), ACL: list, Flags: wire.ModeEphemeral}
			owner.want(owner.call(wire.OpCreate, req).Err, wire.ErrOK, "create")
		}
		var all []*peer
		for range tt.watchers {
			p := w.dial()
			p.manyIdentities(tt.identities)
			p.want(p.addWatch("/p", tt.mode), wire.ErrOK, "addWatch")
			all = append(all, p)
		}
		owner.send(7, wire.OpCloseSession, nil)
		if parts := !owner.closed; parts != tt.parts || w.tree.steps > 2*partSteps {
			t.Errorf("%s: in parts: %v; %d steps", tt.name, parts, w.tree.steps)
		}
		for range nodes {
			w.tick()
		}
		for _, p := range all {
			if !owner.closed || p.closed || len(p.events) != nodes {
				t.Fatalf("%s: ended: %v; a watcher has %d events of %d, closed: %v", tt.name, owner.closed, len(p.events), nodes, p.closed)
			}
		}
		w.check()
	}
}
