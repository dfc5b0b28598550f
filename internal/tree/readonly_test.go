package tree

import (
	"bytes"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// newReadOnlyHarness returns a harness with a read-only Tree, which has replayed the records of
// another Tree, and a client of that one.
func newReadOnlyHarness(t *testing.T) (w *harness, known *peer) {
	w = newHarness(t, Config{ExtendedTypes: true})
	known = w.dial()
	known.mk("/a", 0)
	known.mk("/a/e", wire.ModeEphemeral)
	known.call(wire.OpCreateContainer, &wire.CreateRequest{Path: "/box", ACL: openACL(), Flags: wire.ModeContainer})
	known.mk("/box/in", 0)
	known.remove("/box/in", -1)
	known.call(wire.OpCreateTTL, &wire.CreateTTLRequest{Path: "/ttl", ACL: openACL(), Flags: wire.ModePersistentTTL, TTL: 1})
	counters := w.tree.Counters()
	w.tree = w.shadow
	w.tree.SetReadOnly(counters)
	w.shadow = New(Config{})
	if !w.tree.ReadOnly() || w.tree.Counters() != counters {
		t.Fatal("not read-only, or with other counters")
	}
	return w, known
}

// wantNoRecords fails if the state changed. A record would have failed the test already, because
// the empty shadow cannot replay it.
func (w *harness) wantNoRecords(before []byte) {
	w.tb.Helper()
	if !bytes.Equal(stateWithoutSession(w.tree), before) {
		w.tb.Error("a read-only tree changed")
	}
}

// stateWithoutSession returns the state without the last session ID, which local sessions advance.
func stateWithoutSession(t *Tree) []byte {
	last := t.lastSession
	defer func() { t.lastSession = last }()
	t.lastSession = 0
	return t.AppendSnapshot(nil)
}

func TestReadOnlyServerResumesSessions(t *testing.T) {
	w, known := newReadOnlyHarness(t)
	before := stateWithoutSession(w.tree)
	p := w.dialRaw(&wire.ConnectRequest{SessionID: known.session, Password: known.password, Timeout: 20_000, HasReadOnly: true})
	if p.session != known.session || p.timeout != known.timeout || !readOnlyByte(p) {
		t.Errorf("session %#x, timeout %d", p.session, p.timeout)
	}
	old := w.dialRaw(&wire.ConnectRequest{SessionID: known.session, Password: known.password, Timeout: 20_000})
	if old.session != known.session || !p.closed {
		t.Error("a client that does not support read-only servers was refused")
	}
	wrong := w.dialRaw(&wire.ConnectRequest{SessionID: known.session, Password: make([]byte, 16), HasReadOnly: true})
	if wrong.session != 0 || !wrong.closed || old.closed {
		t.Error("a wrong password was accepted, or closed the connection of the session")
	}
	w.advance(100 * time.Hour)
	w.tick()
	if _, ok := w.tree.NextTick(); ok {
		t.Error("a tick is due")
	}
	if _, err := old.exists("/a/e", false); err != wire.ErrOK {
		t.Errorf("the ephemeral node: %v", err)
	}
	w.wantNoRecords(before)
}

// readOnlyByte returns the read-only flag in the answer to the handshake.
func readOnlyByte(p *peer) bool { return p.raw[0][len(p.raw[0])-1] == 1 }

func TestReadOnlyServerCreatesLocalSessions(t *testing.T) {
	w, _ := newReadOnlyHarness(t)
	before := stateWithoutSession(w.tree)
	for _, req := range []wire.ConnectRequest{{}, {HasReadOnly: true}, {ReadOnly: true}} {
		req.Timeout = 8000
		if p := w.dialRaw(&req); !p.closed || p.session != 0 || len(p.raw) > 0 {
			t.Errorf("%+v: accepted, or answered", req)
		}
	}
	ids := make(map[int64]bool)
	for range 3 {
		p := w.dialRaw(&wire.ConnectRequest{Timeout: 8000, ReadOnly: true, HasReadOnly: true})
		if p.closed || p.session == 0 || ids[p.session] || !readOnlyByte(p) {
			t.Fatalf("a client that accepts read-only servers got session %#x", p.session)
		}
		ids[p.session] = true
	}
	// A client can resume a local session, which ends when it is closed or expires.
	first, second, third := w.peers[w.lastID-2], w.peers[w.lastID-1], w.peers[w.lastID]
	w.advance(7 * time.Second)
	again := w.dialRaw(&wire.ConnectRequest{SessionID: first.session, Password: first.password, Timeout: 8000, ReadOnly: true, HasReadOnly: true})
	if again.session != first.session || !first.closed {
		t.Error("a local session is not resumed")
	}
	second.call(wire.OpCloseSession, nil)
	w.advance(2 * time.Second)
	w.tick()
	if !second.closed || !third.closed || again.closed || w.tree.SessionCount() != 2 {
		t.Errorf("closed %v, overdue %v, resumed %v, %d sessions", second.closed, third.closed, again.closed, w.tree.SessionCount())
	}
	w.advance(9 * time.Second)
	w.tick()
	w.wantNoRecords(before)
}

func TestReadOnlyServerRefusesWrites(t *testing.T) {
	w, known := newReadOnlyHarness(t)
	before := stateWithoutSession(w.tree)
	p := w.dialRaw(&wire.ConnectRequest{SessionID: known.session, Password: known.password, Timeout: 20_000, HasReadOnly: true})
	zxid := w.tree.Zxid()
	for op, req := range map[wire.OpCode]wire.Record{
		wire.OpCreate:          &wire.CreateRequest{Path: "/x", ACL: openACL()},
		wire.OpCreate2:         &wire.CreateRequest{Path: "/x", ACL: openACL()},
		wire.OpCreateContainer: &wire.CreateRequest{Path: "/x", ACL: openACL(), Flags: wire.ModeContainer},
		wire.OpCreateTTL:       &wire.CreateTTLRequest{Path: "/x", ACL: openACL(), Flags: wire.ModePersistentTTL, TTL: 9},
		wire.OpDelete:          &wire.DeleteRequest{Path: "/none", Version: -1},
		wire.OpSetData:         &wire.SetDataRequest{Path: "/a", Version: 99},
		wire.OpSetACL:          &wire.SetACLRequest{Path: "/a", ACL: openACL(), Version: -1},
		wire.OpMulti:           &wire.MultiRequest{},
		wire.OpSync:            &wire.SyncRequest{Path: "/a"},
		wire.OpReconfig:        nil,
		wire.OpCheck:           &wire.CheckVersionRequest{Path: "/a", Version: -1},
		wire.OpDeleteContainer: &wire.DeleteRequest{Path: "/box"},
		wire.OpCloseSession:    nil,
	} {
		if r := p.call(op, req); r.Err != wire.ErrNotReadOnly || r.Zxid != zxid {
			t.Errorf("%s: %v, zxid %#x", op, r.Err, r.Zxid)
		}
	}
	if p.closed {
		t.Fatal("the connection is closed")
	}
	// Reads, watches, and auth requests succeed.
	if data, _, err := p.get("/a", true); err != wire.ErrOK || string(data) != "x" {
		t.Errorf("get: %q, %v", data, err)
	}
	if names, err := p.children("/a", true); err != wire.ErrOK || len(names) != 1 {
		t.Errorf("children: %q, %v", names, err)
	}
	p.auth("digest", "u:p")
	p.want(p.addWatch("/a", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
	if code := w.tree.JumpSequence("/a", 99, w.now, &w.out); code != wire.ErrNotReadOnly {
		t.Errorf("a jump of a counter: %v", code)
	}
	w.flush()
	w.wantNoRecords(before)
}
