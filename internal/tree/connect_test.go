package tree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

func TestConnectTimeoutIsClamped(t *testing.T) {
	for _, tt := range []struct {
		cfg        Config
		asks, gets int32
	}{
		{Config{}, 10_000, 10_000},
		{Config{}, 1, 6_000},
		{Config{}, 0, 6_000},
		{Config{}, -5, 6_000},
		{Config{}, 1 << 30, 60_000},
		{Config{Tick: 100}, 1, 200},
		{Config{Tick: 100}, 5_000, 2_000},
		{Config{MinTimeout: 30, MaxTimeout: 40}, 35, 35},
		{Config{MinTimeout: 50, MaxTimeout: 40}, 45, 50},
	} {
		p := newHarness(t, tt.cfg).dialRaw(&wire.ConnectRequest{Timeout: tt.asks})
		if p.timeout != tt.gets || p.session <= 0 || p.closed {
			t.Errorf("%+v: asked for %d, got %d", tt.cfg, tt.asks, p.timeout)
		}
	}
}

func TestConnectAnswerHasReadOnlyByteOnlyIfRequested(t *testing.T) {
	w := newHarness(t, Config{})
	for _, has := range []bool{false, true} {
		want := uint32(36)
		if has {
			want = 37
		}
		good := w.dialRaw(&wire.ConnectRequest{HasReadOnly: has, ReadOnly: has})
		bad := w.dialRaw(&wire.ConnectRequest{HasReadOnly: has, SessionID: 77, Password: make([]byte, 16)})
		for _, p := range []*peer{good, bad} {
			frame := p.raw[0]
			if n := binary.BigEndian.Uint32(frame); n != want || len(frame) != int(want)+4 {
				t.Errorf("answer of %d bytes, want %d", n, want)
			}
			if has && frame[len(frame)-1] != 0 {
				t.Error("answer claims that the server is read-only")
			}
		}
	}
}

func TestConnectRefusesClientAheadOfServer(t *testing.T) {
	w := newHarness(t, Config{InitialZxid: 5 << 32})
	p := w.dialRaw(&wire.ConnectRequest{LastZxidSeen: 5<<32 + 1})
	if !p.closed || len(p.raw) != 0 {
		t.Errorf("client ahead of the server: closed %v, %d frames", p.closed, len(p.raw))
	}
	p = w.dialRaw(&wire.ConnectRequest{LastZxidSeen: 5 << 32})
	if p.closed || p.session == 0 {
		t.Error("client that saw the last transaction was refused")
	}
	if w.tree.Zxid() != 5<<32+1 {
		t.Errorf("zxid %#x after one session", w.tree.Zxid())
	}
}

func TestResumeNeedsPassword(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	zxid := w.tree.Zxid()
	resume := func(id int64, password []byte) *peer {
		return w.dialRaw(&wire.ConnectRequest{SessionID: id, Password: password, Timeout: 10_000})
	}
	wrong := bytes.Clone(p.password)
	wrong[15] ^= 1
	for name, q := range map[string]*peer{
		"unknown session": resume(p.session+1, p.password),
		"wrong password":  resume(p.session, wrong),
		"short password":  resume(p.session, p.password[:15]),
		"empty password":  resume(p.session, []byte{}),
		"null password":   resume(p.session, nil),
		"negative":        resume(-p.session, p.password),
	} {
		if !q.closed || q.session != 0 || q.timeout != 0 || !bytes.Equal(q.password, make([]byte, 16)) {
			t.Errorf("%s: closed %v, session %#x, timeout %d", name, q.closed, q.session, q.timeout)
		}
	}
	if p.closed {
		t.Fatal("a client with a wrong password closed the owner's connection")
	}
	if r := p.call(wire.OpPing, nil); r.Xid != wire.XidPing || r.Err != wire.ErrOK {
		t.Fatalf("ping: %+v", r)
	}
	q := resume(p.session, p.password)
	if q.session != p.session || q.timeout != 10_000 || !bytes.Equal(q.password, p.password) || q.closed {
		t.Errorf("resumed session %#x, want %#x", q.session, p.session)
	}
	if !p.closed {
		t.Error("the former connection is still open")
	}
	if w.tree.Zxid() != zxid {
		t.Errorf("resuming took %d transactions", w.tree.Zxid()-zxid)
	}
	p.w.tree.Disconnect(p.id, w.now) // the former connection, which is closed already
	q.mk("/a", wire.ModeEphemeral)
	w.check()
}

func TestTakeOverRemovesWatchesOfOldConnection(t *testing.T) {
	w := newHarness(t, Config{})
	p, other := w.dial(), w.dial()
	p.exists("/a", true)
	q := w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 10_000})
	other.mk("/a", wire.ModePersistent)
	q.wantEvents()
	p.wantEvents()
	if n := w.tree.Counts().Watches; n != 0 {
		t.Errorf("%d watches of a closed connection are left", n)
	}
}

// TestRenegotiatedTimeoutIsDurable: the client relies on the last negotiated timeout, so a restart
// must not restore the first one.
func TestRenegotiatedTimeoutIsDurable(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	zxid := w.tree.Zxid()
	q := w.dialRaw(&wire.ConnectRequest{SessionID: p.session, Password: p.password, Timeout: 50_000})
	if q.timeout != 50_000 || w.tree.Zxid() != zxid {
		t.Fatalf("timeout %d, zxid %d to %d", q.timeout, zxid, w.tree.Zxid())
	}
	w.check()
	w.shadow.StartClocks(w.now)
	w.shadow.Tick(Now{Mono: w.now.Mono + 50*time.Second - 1}, &w.out)
	if n := w.shadow.Counts().Sessions; n != 1 {
		t.Error("session expired by its former timeout")
	}
}

func TestSecondHandshakeClosesConnection(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	w.tree.Connect(p.id, Peer{}, &wire.ConnectRequest{}, w.now, &w.out)
	w.flush()
	if !p.closed || w.tree.Counts().Sessions != 1 {
		t.Error("a second handshake on one connection was accepted")
	}
}

type failingRand struct{}

func (failingRand) Read([]byte) (int, error) { return 0, errors.New("no entropy") }

func TestConnectWithoutRandomBytesIsRefused(t *testing.T) {
	w := newHarness(t, Config{Rand: failingRand{}})
	p := w.dialRaw(&wire.ConnectRequest{})
	if !p.closed || len(p.raw) != 0 || w.tree.Counts().Sessions != 0 {
		t.Error("a session without a password was created")
	}
}

func TestPasswordsComeFromRand(t *testing.T) {
	w := newHarness(t, Config{Rand: seededRand(9)})
	var want [16]byte
	if _, err := io.ReadFull(seededRand(9), want[:]); err != nil {
		t.Fatal(err)
	}
	if p := w.dial(); !bytes.Equal(p.password, want[:]) {
		t.Errorf("password % x, want % x", p.password, want)
	}
	a, b := newHarness(t, Config{Rand: io.MultiReader(seededRand(3))}).dial(), w.dial()
	if bytes.Equal(a.password, b.password) {
		t.Error("two sessions have the same password")
	}
}
