package zktest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/zk"
)

func TestParseRequest(t *testing.T) {
	del := &wire.DeleteRequest{Path: "/d", Version: -1}
	for _, test := range []struct {
		op   wire.OpCode
		rec  wire.Record
		name string
		path string
	}{
		{wire.OpCreate2, &wire.CreateRequest{Path: "/a"}, "create2", "/a"},
		{wire.OpDelete, del, "delete", "/d"},
		{wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpDelete, Req: del}}}, "multi", "/d"},
		{wire.OpMulti, &wire.MultiRequest{}, "multi", ""},
		{wire.OpSetWatches, &wire.SetWatches{DataWatches: []string{"/w"}}, "setWatches", ""},
		{wire.OpPing, nil, "ping", ""},
		{wire.OpCloseSession, nil, "closeSession", ""},
		{99, nil, "op99", ""},
	} {
		xid, op, path := parseRequest(wire.AppendRequest(nil, 5, test.op, test.rec)[4:])
		if xid != 5 || op != test.name || path != test.path {
			t.Errorf("%v: %d %q %q, want 5 %q %q", test.op, xid, op, path, test.name, test.path)
		}
	}
	if _, _, path := parseRequest([]byte{1, 2, 3}); path != "" {
		t.Errorf("three bytes have the path %q", path)
	}
}

func TestMatch(t *testing.T) {
	multi := wire.AppendRequest(nil, 5, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: "/a"}},
		{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: "/d/e", Version: -1}},
	}})[4:]
	for _, test := range []struct {
		match    Match
		op, path string
		want     bool
	}{
		{Match{}, "create2", "/a", true},
		{Match{}, "ping", "", false},
		{Match{}, "connect", "", false},
		{Match{Op: "ping"}, "ping", "", true},
		{Match{Op: "delete"}, "create2", "/a", false},
		{Match{Op: "create"}, "create2", "/a", true},
		{Match{Op: "create2"}, "create", "/a", true},
		{Match{Op: "create2"}, "createContainer", "/a", false},
		{Match{Path: "/a/"}, "create2", "/a/b", true},
		{Match{Path: "/a/"}, "create2", "/ab", false},
		{Match{Op: "delete"}, "multi", "/a", true},
		{Match{Op: "delete", Path: "/d/"}, "multi", "/a", true},
		{Match{Op: "delete", Path: "/a"}, "multi", "/a", false},
		{Match{Op: "multi", Path: "/a"}, "multi", "/a", true},
		{Match{Op: "check"}, "multi", "/a", false},
	} {
		if got := test.match.matches(test.op, test.path, multi); got != test.want {
			t.Errorf("%+v matches %s of %q: %v, want %v", test.match, test.op, test.path, got, test.want)
		}
	}
}

// TestEndWhileBlocked ends a test during every fault that holds data back. The bubble
// checks that no goroutine is left.
func TestEndWhileBlocked(t *testing.T) {
	for name, fault := range map[string]func(*Relay){
		"blackhole": func(r *Relay) { r.Blackhole(true) },
		"half open": func(r *Relay) { r.HalfOpen() },
		"delay":     func(r *Relay) { r.Delay(time.Hour) },
		"trickle":   func(r *Relay) { r.Trickle(time.Hour) },
		"refuse":    func(r *Relay) { r.Refuse(true); r.CutConnections() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := Start(t)
				c := srv.Dial(t, session(4*time.Second))
				fault(&srv.Relay)
				failed := make(chan error, 1)
				c.Go(zk.ExistsOp("/x", false), func(r zk.Result) { failed <- r.Err })
				time.Sleep(100 * time.Millisecond)
				if name != "half open" && len(failed) == 1 && <-failed == nil {
					t.Error("the request was answered all the same")
				}
			})
		})
	}
}

// TestImitatedServersSendEventsWithoutZxid: events name their transaction since 3.9.
func TestImitatedServersSendEventsWithoutZxid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for release, names := range map[Release]bool{Newest: true, Release35: false, Release34: false} {
			srv := Start(t)
			srv.Imitate(release)
			c := srv.Dial(t, session(4*time.Second))
			_, _, events, err := c.ExistsW(t.Context(), "/x")
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Create(t.Context(), "/x", nil, nil, zk.ModeEphemeral); err != nil {
				t.Fatal(err)
			}
			if e := <-events; e.Path != "/x" || e.Zxid > 0 != names {
				t.Errorf("release %d: %+v", release, e)
			}
		}
	})
}
