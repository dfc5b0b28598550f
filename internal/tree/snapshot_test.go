package tree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zklock/zklock/internal/wire"
)

// variedTree returns a tree with nodes of every kind, sessions, and access control
// lists.
func variedTree(tb testing.TB) *harness {
	w := newHarness(tb, Config{ExtendedTypes: true, InitialZxid: 3 << 32})
	p, q := w.dial(), w.dial()
	p.auth("digest", "ann:1")
	p.mk("/a", 0)
	p.mk("/a/b", 0)
	p.mk("/a/b/c", wire.ModeEphemeral)
	q.mk("/q", wire.ModeEphemeralSequential)
	p.mkACL("/mine", acl(31, "auth", ""), acl(1, "world", "anyone"))
	p.mkACL("/mine/too", acl(31, "auth", ""), acl(1, "world", "anyone"))
	p.call(wire.OpCreateContainer, &wire.CreateRequest{Path: "/cont", ACL: openACL()})
	p.call(wire.OpCreateTTL, &wire.CreateTTLRequest{Path: "/ttl", ACL: openACL(), Flags: wire.ModePersistentTTL, TTL: 77})
	p.ask(wire.OpCreate, &wire.CreateRequest{Path: "/null", ACL: openACL()}, new(wire.CreateResponse))
	p.ask(wire.OpCreate, &wire.CreateRequest{Path: "/empty", Data: []byte{}, ACL: openACL()}, new(wire.CreateResponse))
	p.set("/zookeeper/quota", "q", -1)
	p.set("/", "root", -1)
	p.mk("/zookeeper/more", 0)
	p.remove("/none", -1)
	p.multi(opCreate("/m", 0), opSet("/a", -1), opDelete("/m", -1), opCheck("/a", -1))
	q.disconnect()
	return w
}

func TestSnapshotRoundTrip(t *testing.T) {
	w := variedTree(t)
	w.check()
	snap := w.tree.AppendSnapshot([]byte("before"))
	snap, ok := bytes.CutPrefix(snap, []byte("before"))
	if !ok {
		t.Fatal("AppendSnapshot does not append")
	}
	kept := bytes.Clone(snap)
	fresh := New(Config{ExtendedTypes: true})
	if err := restoreBytes(fresh, snap); err != nil {
		t.Fatal(err)
	}
	clear(snap) // Restore must not have kept it
	if got := fresh.AppendSnapshot(nil); !bytes.Equal(got, kept) {
		t.Error("the snapshot of a restored tree differs")
	}
	a, b := fresh.Counts(), w.tree.Counts()
	if a.Connections = b.Connections; a != b {
		t.Errorf("counts %+v, want %+v", a, b)
	}
	if fresh.Zxid() != w.tree.Zxid() {
		t.Errorf("zxid %#x, want %#x", fresh.Zxid(), w.tree.Zxid())
	}
	// The restored tree can replay later records.
	w.shadow = fresh
	p := w.dial()
	p.mk("/after", wire.ModeEphemeral)
	w.peers[1].call(wire.OpCloseSession, nil)
	w.check()
}

func TestSnapshotOfNewTree(t *testing.T) {
	tr := New(Config{InitialZxid: 5})
	other := New(Config{InitialZxid: 9})
	if err := restoreBytes(other, tr.AppendSnapshot(nil)); err != nil || other.Zxid() != 5 {
		t.Errorf("zxid %d, %v", other.Zxid(), err)
	}
}

// TestRestoreReturnsErrorOfReader fails a read in the middle of a snapshot.
func TestRestoreReturnsErrorOfReader(t *testing.T) {
	snap := variedTree(t).tree.AppendSnapshot(nil)
	broken := errors.New("broken")
	for n := range snap {
		src := io.MultiReader(bytes.NewReader(snap[:n]), iotest.ErrReader(broken))
		err := New(Config{}).Restore(src, int64(len(snap)))
		if !errors.Is(err, broken) || errors.Is(err, ErrCorrupt) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}

// TestRestoreReadsInParts restores a snapshot with more data than Restore reads at once, and with a
// node that has more.
func TestRestoreReadsInParts(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for i := range 50 {
		p.mk(fmt.Sprintf("/n%d", i), 0)
		p.set(fmt.Sprintf("/n%d", i), strings.Repeat(string(rune('A'+i)), 20_000), -1)
	}
	p.set("/n25", strings.Repeat("x", 2*snapshotPart), -1)
	snap := w.tree.AppendSnapshot(nil)
	largest := 0
	src := readerFunc(func(b []byte) (int, error) {
		largest = max(largest, len(b))
		n := copy(b, snap)
		snap = snap[n:]
		return n, nil
	})
	fresh := New(Config{})
	if err := fresh.Restore(src, int64(len(snap))); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(fresh.AppendSnapshot(nil), w.tree.AppendSnapshot(nil)) {
		t.Error("the restored tree differs")
	}
	if largest > 3*snapshotPart {
		t.Errorf("Restore read %d bytes at once", largest)
	}
}

// readerFunc is an io.Reader that calls itself.
type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestDamagedSnapshotsAreRefused checks that Restore refuses a damaged snapshot, or returns a
// consistent Tree.
func TestDamagedSnapshotsAreRefused(t *testing.T) {
	snap := variedTree(t).tree.AppendSnapshot(nil)
	for n := range snap {
		if err := restoreBytes(New(Config{}), snap[:n]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	if err := restoreBytes(New(Config{}), append(bytes.Clone(snap), 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte after the end: %v", err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		bad := bytes.Clone(snap)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		tr := New(Config{})
		if err := restoreBytes(tr, bad); err == nil {
			exercise(t, tr)
		} else if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Fatal(err)
		}
	}
}

// exercise checks the invariants of a Tree that was restored from arbitrary bytes, and uses it.
func exercise(tb testing.TB, tr *Tree) {
	tb.Helper()
	checkInvariants(tb, tr)
	snap := tr.AppendSnapshot(nil)
	again := New(Config{})
	if err := restoreBytes(again, snap); err != nil {
		tb.Fatalf("its own snapshot: %v", err)
	}
	if !bytes.Equal(again.AppendSnapshot(nil), snap) {
		tb.Fatal("its own snapshot differs")
	}
	var out Out
	tr.StartClocks(Now{})
	tr.Tick(Now{Mono: 1 << 62, Wall: 1 << 60}, &out)
	if c := tr.Counts(); c.Sessions != 0 || c.Ephemerals != 0 {
		tb.Fatalf("after the end of all sessions: %+v", c)
	}
}

// TestInconsistentSnapshotsAreRefused restores well-formed snapshots of inconsistent states.
func TestInconsistentSnapshotsAreRefused(t *testing.T) {
	for name, damage := range map[string]func(*Tree){
		"no config": func(tr *Tree) {
			n := tr.nodes.get(configPath)
			n.detach()
			tr.nodes.remove(configPath)
		},
		"ephemeral without a session": func(tr *Tree) { tr.nodes.get("/a").extraOrNew().first.owner = 99 },
		"child of an ephemeral":       func(tr *Tree) { tr.nodes.get("/a").owner = tr.lastSession },
		"ephemeral root":              func(tr *Tree) { tr.root.owner = tr.lastSession },
		"ephemeral /zookeeper":        func(tr *Tree) { tr.nodes.get(procPath).owner = containerOwner },
		"bad path":                    func(tr *Tree) { tr.nodes.get("/a").setText("/../a", nil) },
		"parent missing":              func(tr *Tree) { tr.nodes.get("/a").setText("/b", nil) },
		"duplicate node":              func(tr *Tree) { tr.nodes.get("/a/b").setText("/a", nil) },
		"session above the last":      func(tr *Tree) { tr.lastSession-- },
		"session without a timeout":   func(tr *Tree) { tr.sessions[tr.lastSession].timeout = 0 },
		"first node not the root":     func(tr *Tree) { tr.root.setText("/x", nil) },
	} {
		w := newHarness(t, Config{})
		p := w.dial()
		p.mk("/a", 0)
		p.mk("/a/b", 0)
		damage(w.tree)
		if err := restoreBytes(New(Config{}), w.tree.AppendSnapshot(nil)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for version, want := range map[string]error{"\x00": ErrCorrupt, "\x03": ErrVersion, "": ErrCorrupt} {
		if err := restoreBytes(New(Config{}), []byte(snapshotMark+version)); !errors.Is(err, want) {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// TestRestoreAllocatesLittleForFalseCounts restores a large count without elements, which would
// need too much memory if Restore allocated it in advance.
func TestRestoreAllocatesLittleForFalseCounts(t *testing.T) {
	b := append([]byte(snapshotMark+"\x01"), make([]byte, 17)...)
	b = binary.BigEndian.AppendUint32(b, 1<<31-1)
	if err := restoreBytes(New(Config{}), b); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
}

func TestInvalidRecordsAreRefused(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/a", 0)
	p.mk("/a/e", wire.ModeEphemeral)
	s := p.session
	z := w.tree.Zxid()
	create := func(path string, owner int64) *txn {
		return &txn{op: wire.OpCreate, path: path, acl: openACL(), owner: owner}
	}
	for name, rec := range map[string][]byte{
		"nothing":                     {},
		"an old version":              {0, 0},
		"too short":                   {recordVersion, 0, 0},
		"an old id":                   appendTxn(nil, z, 0, create("/b", 0)),
		"a gap":                       appendTxn(nil, z+2, 0, create("/b", 0)),
		"trailing byte":               append(appendTxn(nil, z+1, 0, create("/b", 0)), 0),
		"unknown operation":           appendTxn(nil, z+1, 0, &txn{op: wire.OpGetData}),
		"bare check":                  appendTxn(nil, z+1, 0, &txn{op: wire.OpCheck}),
		"node exists":                 appendTxn(nil, z+1, 0, create("/a", 0)),
		"no parent":                   appendTxn(nil, z+1, 0, create("/n/n", 0)),
		"bad path":                    appendTxn(nil, z+1, 0, create("/a/", 0)),
		"the root":                    appendTxn(nil, z+1, 0, create("/", 0)),
		"child of an ephemeral":       appendTxn(nil, z+1, 0, create("/a/e/c", 0)),
		"no such owner":               appendTxn(nil, z+1, 0, create("/b", s+1)),
		"delete of a missing node":    appendTxn(nil, z+1, 0, &txn{op: wire.OpDelete, path: "/n"}),
		"delete of a parent":          appendTxn(nil, z+1, 0, &txn{op: wire.OpDelete, path: "/a"}),
		"delete of an initial node":   appendTxn(nil, z+1, 0, &txn{op: wire.OpDelete, path: quotaPath}),
		"set of a missing node":       appendTxn(nil, z+1, 0, &txn{op: wire.OpSetData, path: "/n"}),
		"setACL of a missing node":    appendTxn(nil, z+1, 0, &txn{op: wire.OpSetACL, path: "/n", acl: openACL()}),
		"session exists":              appendTxn(nil, z+1, 0, &txn{op: wire.OpCreateSession, session: s, timeout: 1, data: make([]byte, 16)}),
		"session without id":          appendTxn(nil, z+1, 0, &txn{op: wire.OpCreateSession, timeout: 1, data: make([]byte, 16)}),
		"session of a short password": appendTxn(nil, z+1, 0, &txn{op: wire.OpCreateSession, session: s + 1, timeout: 1, data: make([]byte, 15)}),
		"end of no session":           appendTxn(nil, z+1, 0, &txn{op: wire.OpCloseSession, session: s + 1}),
		"timeout of no session":       appendTxn(nil, z, 0, &txn{op: opSessionTimeout, session: s + 1, timeout: 5}),
		"timeout of nothing":          appendTxn(nil, z, 0, &txn{op: opSessionTimeout, session: s}),
		"timeout with an id":          appendTxn(nil, z+1, 0, &txn{op: opSessionTimeout, session: s, timeout: 5}),
		"nested multi":                appendTxn(nil, z+1, 0, &txn{op: wire.OpMulti, subs: []txn{{op: wire.OpMulti}}}),
		"second of a multi": appendTxn(nil, z+1, 0, &txn{op: wire.OpMulti, subs: []txn{
			*create("/b", 0), *create("/b", 0)}}),
	} {
		tr := restored(t, Config{}, w.tree)
		if err := tr.Replay([]byte{3, 0}); !errors.Is(err, ErrVersion) {
			t.Errorf("another version: %v", err)
		}
		err := tr.Replay(rec)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "/a") {
			t.Errorf("%s: the error contains a path: %v", name, err)
		}
	}
}
