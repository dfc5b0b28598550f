package tree

import (
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

func TestCountsSessionsAndPaths(t *testing.T) {
	w := newHarness(t, Config{})
	empty := w.tree.Counts()
	if empty != (Counts{Nodes: 4, DataBytes: int64(len(rootPath + procPath + quotaPath + configPath))}) {
		t.Errorf("a new tree counts %+v", empty)
	}
	p, q := w.dial(), w.dial()
	p.mk("/e2", wire.ModeEphemeral)
	p.mk("/e1", wire.ModeEphemeral)
	q.exists("/e1", true)
	p.exists("/e1", true)
	p.children("/", true)
	q.disconnect()
	q = w.dial()
	q.exists("/e1", true)
	got := w.tree.Counts()
	want := Counts{Sessions: 3, Connections: 2, Nodes: 6, Ephemerals: 2, DataBytes: empty.DataBytes + 8, Watches: 3, Watchers: 2, WatchedPaths: 2}
	if got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	sessions := w.tree.Sessions()
	if len(sessions) != 3 || sessions[0].ID != p.session || !slices.Equal(sessions[0].Ephemerals, []string{"/e2", "/e1"}) ||
		!sessions[0].Connected || sessions[0].Conn != p.id || sessions[1].Connected || sessions[0].Timeout != 10_000 {
		t.Errorf("sessions %+v", sessions)
	}
	if id, timeout, ok := w.tree.Session(p.id); id != p.session || timeout != 10_000 || !ok {
		t.Errorf("session %#x, %d, %v", id, timeout, ok)
	}
	if _, _, ok := w.tree.Session(99); ok {
		t.Error("an unknown connection has a session")
	}
	data, stat, ok := w.tree.Get("/e1")
	if string(data) != "x" || stat.EphemeralOwner != p.session || !ok {
		t.Errorf("%q, %+v, %v", data, stat, ok)
	}
	data[0] = 'y'
	if data, _, _ := w.tree.Get("/e1"); string(data) != "x" {
		t.Error("Get does not copy the data")
	}
	if _, _, ok := w.tree.Get("/none"); ok {
		t.Error("Get found a missing node")
	}
	if got := w.tree.Paths(); !slices.Equal(got, []string{"/", procPath, quotaPath, configPath, "/e2", "/e1"}) {
		t.Errorf("paths %q", got)
	}
	p.set("/e1", "longer", -1)
	p.remove("/e2", -1)
	if got := w.tree.Counts().DataBytes; got != empty.DataBytes+3+6 {
		t.Errorf("%d bytes", got)
	}
}

func TestCounters(t *testing.T) {
	tr := New(Config{})
	var out Out
	connect := func(id ConnID, req wire.ConnectRequest) { tr.Connect(id, Peer{}, &req, Now{}, &out) }
	connect(1, wire.ConnectRequest{Timeout: 6000})
	connect(2, wire.ConnectRequest{Timeout: 6000})
	connect(3, wire.ConnectRequest{Timeout: 6000, SessionID: 99}) // no such session
	frame := wire.AppendRequest(nil, -4, wire.OpAuth, &wire.AuthPacket{Scheme: "nonsense"})
	tr.Request(1, frame[4:], Now{}, &out)
	tr.Tick(Now{Mono: time.Hour}, &out)
	want := Counters{Opened: 2, Expired: 2, AuthFailures: 1}
	if got := tr.Counters(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
