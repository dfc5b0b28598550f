package tree

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// call is a call of a method of a Tree.
type call struct {
	conn    ConnID
	peer    Peer
	connect *wire.ConnectRequest
	frame   []byte // a request
	gone    bool   // a disconnection
	tick    bool
	now     Now
}

func (c *call) do(t *Tree, out *Out) {
	switch {
	case c.tick:
		t.Tick(c.now, out)
	case c.gone:
		t.Disconnect(c.conn, c.now)
	case c.connect != nil:
		t.Connect(c.conn, c.peer, c.connect, c.now, out)
	default:
		t.Request(c.conn, c.frame, c.now, out)
	}
}

// history has the calls of a random run, their outputs, and a hash of the state after each call.
type history struct {
	cfg    func() Config
	start  Now
	calls  []call
	outs   [][]byte
	log    [][]byte
	hashes [][sha256.Size]byte // by the number of records; zero within a call
	known  []bool              // whether hashes has an entry for this number
}

// newRandomHistory runs random connects, requests, disconnects, and ticks.
func newRandomHistory(tb testing.TB, seed uint64, steps int) *history {
	h := &history{
		cfg:   func() Config { return Config{ExtendedTypes: true, Rand: seededRand(byte(seed))} },
		start: Now{Wall: 1_700_000_000_000, Mono: time.Hour},
	}
	w := newHarness(tb, h.cfg())
	r := &random{rand.New(rand.NewPCG(seed, 9)), w}
	h.note(w.tree, nil)
	w.lastID = 0
	open := map[ConnID]*wire.ConnectResponse{}
	var ids []ConnID
	now := h.start
	for range steps {
		now.Mono += time.Duration(r.IntN(300)) * time.Millisecond
		now.Wall += int64(r.IntN(300))
		c := call{now: now, peer: w.peer}
		switch n := r.IntN(40); {
		case n < 2 || len(ids) == 0:
			w.lastID++
			c.conn, c.connect = w.lastID, &wire.ConnectRequest{Timeout: 4000 + r.Int32N(9000), HasReadOnly: true}
			if old := open[ConnID(1+r.IntN(int(w.lastID)))]; old != nil && n == 1 {
				c.connect.SessionID, c.connect.Password = old.SessionID, old.Password
			}
			ids = append(ids, c.conn)
		case n == 2:
			c.gone, c.conn = true, ids[len(ids)-1-r.IntN(min(5, len(ids)))]
		case n < 6:
			c.tick = true
		default:
			// Most of the recent connections are still open.
			c.conn = ids[len(ids)-1-r.IntN(min(5, len(ids)))]
			op, req := r.request()
			if n == 6 && r.IntN(3) == 0 {
				op, req = wire.OpCloseSession, nil
			}
			frame := wire.AppendRequest(nil, int32(len(h.calls)), op, req)
			c.frame = frame[4:]
		}
		var out Out
		c.do(w.tree, &out)
		if c.connect != nil && len(out.Sends) > 0 && out.Sends[len(out.Sends)-1].Frame != nil {
			p := &peer{w: w}
			p.receive(out.Sends[len(out.Sends)-1].Frame)
			open[c.conn] = &wire.ConnectResponse{SessionID: p.session, Password: p.password}
		}
		h.calls = append(h.calls, c)
		h.outs = append(h.outs, encodeOut(&out))
		h.note(w.tree, out.Records)
	}
	return h
}

// note stores the records of a call and a hash of the state after it.
func (h *history) note(t *Tree, records [][]byte) {
	h.log = append(h.log, records...)
	for len(h.hashes) <= len(h.log) {
		h.hashes, h.known = append(h.hashes, [sha256.Size]byte{}), append(h.known, false)
	}
	h.hashes[len(h.log)], h.known[len(h.log)] = hashOf(t), true
}

// encodeOut encodes an Out.
func encodeOut(out *Out) []byte {
	var b []byte
	for _, rec := range out.Records {
		b = fmt.Appendf(b, "record %x\n", rec)
	}
	for _, s := range out.Sends {
		b = fmt.Appendf(b, "send %d %t %x\n", s.Conn, s.Close, s.Frame)
	}
	return b
}

// TestSameCallsGiveSameBytes checks that equal calls produce equal records, frames, and states.
func TestSameCallsGiveSameBytes(t *testing.T) {
	for seed := range uint64(10) {
		h := newRandomHistory(t, seed, 1500)
		if len(h.log) < 300 {
			t.Fatalf("seed %d: %d records", seed, len(h.log))
		}
		again := New(h.cfg())
		again.StartClocks(h.start)
		for i := range h.calls {
			var out Out
			h.calls[i].do(again, &out)
			if got := encodeOut(&out); !bytes.Equal(got, h.outs[i]) {
				t.Fatalf("seed %d, call %d gave\n%s\nthen\n%s", seed, i, h.outs[i], got)
			}
		}
		if hashOf(again) != h.hashes[len(h.log)] {
			t.Errorf("seed %d: another state", seed)
		}
	}
}

// TestReplayFromEverySnapshot checks that a snapshot after any record and the rest of the log yield
// the same state as the log without a snapshot.
func TestReplayFromEverySnapshot(t *testing.T) {
	for seed := range uint64(3) {
		h := newRandomHistory(t, seed+100, 1500)
		if len(h.log) < 150 {
			t.Fatalf("seed %d: %d records", seed, len(h.log))
		}
		states := make([][]byte, 0, len(h.log)+1)
		t0 := New(h.cfg())
		states = append(states, t0.AppendSnapshot(nil))
		for i, rec := range h.log {
			if err := t0.Replay(rec); err != nil {
				t.Fatalf("seed %d, record %d: %v", seed, i+1, err)
			}
			states = append(states, t0.AppendSnapshot(nil))
		}
		for i, state := range states {
			if h.known[i] && sha256.Sum256(state) != h.hashes[i] {
				t.Fatalf("seed %d: the log up to record %d gives another state than the calls did", seed, i)
			}
		}
		for from := range states {
			fresh := New(h.cfg())
			if err := restoreBytes(fresh, states[from]); err != nil {
				t.Fatalf("seed %d, snapshot %d: %v", seed, from, err)
			}
			for i, rec := range h.log[from:] {
				if err := fresh.Replay(rec); err != nil {
					t.Fatalf("seed %d, snapshot %d, record %d: %v", seed, from, from+i+1, err)
				}
				// Comparing every state takes long, so only some snapshots do it.
				if from%50 == 0 && !bytes.Equal(fresh.AppendSnapshot(nil), states[from+i+1]) {
					t.Fatalf("seed %d, snapshot %d: another state after record %d", seed, from, from+i+1)
				}
			}
			if hashOf(fresh) != h.hashes[len(h.log)] {
				t.Fatalf("seed %d, snapshot %d: another state at the end", seed, from)
			}
		}
	}
}

func TestWriteSnapshotEqualsAppendSnapshot(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for i := range 60 {
		p.ask(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: bytes.Repeat([]byte{byte(i)}, 10_000), ACL: openACL()}, new(wire.CreateResponse))
	}
	var b bytes.Buffer
	var sizes []int
	if err := w.tree.WriteSnapshot(writerFunc(func(p []byte) (int, error) { sizes = append(sizes, len(p)); return b.Write(p) })); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), w.tree.AppendSnapshot(nil)) || len(sizes) < 3 {
		t.Errorf("%d bytes in parts of %v", b.Len(), sizes)
	}
	full := errors.New("disk full")
	calls := 0
	if err := w.tree.WriteSnapshot(writerFunc(func([]byte) (int, error) { calls++; return 0, full })); err != full || calls != 1 {
		t.Errorf("%v after %d writes", err, calls)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// hashOf returns the hash of a Tree's snapshot. Equal durable states have equal hashes.
func hashOf(t *Tree) [sha256.Size]byte { return sha256.Sum256(t.AppendSnapshot(nil)) }
