package zkserver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestTreeLimitsAreCounted reaches each limit through the server and checks its counter.
func TestTreeLimitsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.MaxNodes, opts.MaxData, opts.MaxWatches, opts.MaxWatchesPerConn, opts.MaxSessions, opts.MaxReply = 8, 5000, 3, 2, 2, 1000
		s := start(t, opts)
		a, b := login(t, s, time.Hour), login(t, s, time.Hour)
		refused := open(t, s)
		refused.write(wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 10_000}))
		refused.wantClosed()

		for i := range 4 {
			a.create(fmt.Sprint("/", i), wire.ModePersistent)
		}
		quota := wire.ErrQuotaExceeded
		want := func(op wire.OpCode, rec wire.Record, what string) {
			t.Helper()
			if _, err := a.try(op, rec); err != quota {
				t.Errorf("%s: %v, want %v", what, err, quota)
			}
		}
		want(wire.OpCreate, &wire.CreateRequest{Path: "/5", ACL: openACL()}, "one node too many")
		want(wire.OpSetData, &wire.SetDataRequest{Path: "/1", Data: make([]byte, 5000), Version: -1}, "too much data")
		a.do(wire.OpSetData, &wire.SetDataRequest{Path: "/1", Data: make([]byte, 1500), Version: -1})
		want(wire.OpGetData, &wire.GetDataRequest{Path: "/1"}, "a long reply")
		for _, path := range []string{"/a", "/b"} {
			a.do(wire.OpExists, &wire.ExistsRequest{Path: path, Watch: true}, wire.ErrNoNode)
		}
		want(wire.OpExists, &wire.ExistsRequest{Path: "/c", Watch: true}, "one watch too many of a connection")
		b.do(wire.OpExists, &wire.ExistsRequest{Path: "/a", Watch: true}, wire.ErrNoNode)
		a.do(wire.OpDelete, &wire.DeleteRequest{Path: "/0", Version: -1})
		b.send(wire.OpSetWatches, &wire.SetWatches{DataWatches: []string{}, ExistWatches: []string{"/x", "/y"}, ChildWatches: []string{}})
		b.wantClosed()
		if got, want := s.Stats().LimitRefusals, (LimitRefusals{Watches: 2, Nodes: 1, Data: 1, Sessions: 1, Replies: 1}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

func TestIdleSinceIsEndOfLastSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		began := time.Now()
		time.Sleep(time.Minute)
		if got := s.Stats().IdleSince; !got.Equal(began) {
			t.Errorf("idle since %v, want the start", got)
		}
		c := login(t, s, 10*time.Second)
		c.nc.Close() // the session continues
		time.Sleep(5 * time.Second)
		if st := s.Stats(); !st.IdleSince.IsZero() || st.Sessions != 1 {
			t.Errorf("%+v while a session exists", st)
		}
		time.Sleep(time.Hour)
		if got := s.Stats().IdleSince.Sub(began); got < 70*time.Second || got > 71*time.Second {
			t.Errorf("idle since %v, want the end of the session at 1m10s", got)
		}
		s.Close()
		if s.Stats().Zxid == 0 {
			t.Error("no counters after Close")
		}
	})
}
