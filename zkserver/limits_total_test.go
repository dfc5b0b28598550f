package zkserver

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestOutstandingOfAll has clients that together ask more than the server keeps:
// they wait, and all are answered.
func TestOutstandingOfAll(t *testing.T) {
	for name, limit := range map[string]func(*Options){
		"requests": func(o *Options) { o.MaxOutstandingTotal = 10 },
		"bytes":    func(o *Options) { o.MaxOutstandingBytes = 1024 },
		"neither":  func(*Options) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts := quiet(t)
			limit(&opts)
			s := start(t, opts)
			const clients, each = 20, 200
			var burst []byte
			for i := range each {
				burst = wire.AppendRequest(burst, int32(i), wire.OpExists, &wire.ExistsRequest{Path: "/zookeeper"})
			}
			var crowd sync.WaitGroup
			release := make(chan struct{})
			go s.ask(func() { <-release }) // the loop stands while they send
			for range clients {
				// Each ends when all its requests are answered.
				crowd.Go(func() {
					c := login(t, s, time.Hour)
					go c.nc.Write(burst)
					for i := range each {
						if h, _, err := c.next(); err != nil || h.Xid != int32(i) {
							t.Errorf("reply %d: xid %d, %v", i, h.Xid, err)
							return
						}
					}
				})
			}
			close(release)
			crowd.Wait()
			st := s.Stats()
			if throttled := st.RequestsThrottled > 0; throttled != (name != "neither") {
				t.Errorf("%s: throttled %d times", name, st.RequestsThrottled)
			}
			if n, b := s.pool.requests.Load(), s.pool.bytes.Load(); n != 0 || b != 0 {
				t.Errorf("%s: %d requests of %d bytes are outstanding for ever", name, n, b)
			}
		})
	}
}

// TestOutstandingOfTheDeaf has clients that fill the bounds and read nothing:
// the others are served all the same.
func TestOutstandingOfTheDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.MaxOutstandingTotal = 100
		s := start(t, opts)
		good := login(t, s, time.Hour)
		good.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 500_000), ACL: openACL()})
		var burst []byte
		for i := range 500 {
			burst = wire.AppendRequest(burst, int32(i), wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
		}
		for range 5 {
			deaf := login(t, s, time.Minute)
			go deaf.nc.Write(burst) // ends with the connection
		}
		synctest.Wait()
		if n := s.pool.requests.Load(); n < 100 {
			t.Errorf("%d requests are outstanding, want the bound reached", n)
		}
		for i := range 50 {
			good.create(fmt.Sprint("/n", i), wire.ModePersistent)
		}
		// Their sessions are not heard either: nothing of them is applied.
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if st := s.Stats(); st.Connections != 1 || s.pool.requests.Load() != 0 {
			t.Errorf("%d connections, %d requests after all sessions but one were over", st.Connections, s.pool.requests.Load())
		}
	})
}

// TestUnreadOfAll has many clients that do not read, each within its own bound.
func TestUnreadOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.MaxUnreadTotal = 2 << 20
		opts.Logger = discard()
		s := start(t, opts)
		good := login(t, s, time.Hour)
		good.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 300_000), ACL: openACL()})
		const n = 30
		for range n {
			deaf := login(t, s, time.Hour)
			deaf.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
			synctest.Wait()
			held := 0
			s.ask(func() {
				for _, c := range s.loop.conns {
					held += c.backlog()
				}
			})
			if held > 2<<20 {
				t.Fatalf("%d bytes are kept for clients that do not read", held)
			}
		}
		st := s.Stats()
		if cut := st.ConnectionsCut.SlowReaders; cut < n/2 || st.Connections != n+1-int(cut) {
			t.Errorf("%d were cut and %d connections are left of %d", cut, st.Connections, n+1)
		}
		good.create("/fine", wire.ModePersistent)
	})
}

// TestLimitsOfTheTree reaches each bound through the server, and counts.
func TestLimitsOfTheTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
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
		want(wire.OpCreate, &wire.CreateRequest{Path: "/5", ACL: openACL()}, "a node too many")
		want(wire.OpSetData, &wire.SetDataRequest{Path: "/1", Data: make([]byte, 5000), Version: -1}, "too much data")
		a.do(wire.OpSetData, &wire.SetDataRequest{Path: "/1", Data: make([]byte, 1500), Version: -1})
		want(wire.OpGetData, &wire.GetDataRequest{Path: "/1"}, "a long reply")
		for _, path := range []string{"/a", "/b"} {
			a.do(wire.OpExists, &wire.ExistsRequest{Path: path, Watch: true}, wire.ErrNoNode)
		}
		want(wire.OpExists, &wire.ExistsRequest{Path: "/c", Watch: true}, "a watch too many of one")
		b.do(wire.OpExists, &wire.ExistsRequest{Path: "/a", Watch: true}, wire.ErrNoNode)
		a.do(wire.OpDelete, &wire.DeleteRequest{Path: "/0", Version: -1})
		b.send(wire.OpSetWatches, &wire.SetWatches{DataWatches: []string{}, ExistWatches: []string{"/x", "/y"}, ChildWatches: []string{}})
		b.wantClosed()
		if got, want := s.Stats().LimitRefusals, (LimitRefusals{Watches: 2, Nodes: 1, Data: 1, Sessions: 1, Replies: 1}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

// TestSilentClient is a connection that is half open: nothing comes from it, and
// nobody told the server why. Its session ends, and it with that.
func TestSilentClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, quiet(t))
		silent, other := login(t, s, 4*time.Second), login(t, s, time.Hour)
		silent.create("/e", wire.ModeEphemeral)
		began := time.Now()
		silent.wantClosed()
		if d := time.Since(began); d != 4*time.Second {
			t.Errorf("closed after %v, want the session's 4s", d)
		}
		synctest.Wait() // the connection's goroutines may see its end after we do
		if st := s.Stats(); other.exists("/e") || st.Connections != 1 || st.SessionsExpired != 1 {
			t.Errorf("the node is there %v, %d connections, %d sessions expired", other.exists("/e"), st.Connections, st.SessionsExpired)
		}
	})
}

func TestLimitOptionsAreChecked(t *testing.T) {
	for name, set := range map[string]func(*Options){
		"MaxOutstandingTotal": func(o *Options) { o.MaxOutstandingTotal = -1 },
		"MaxOutstandingBytes": func(o *Options) { o.MaxOutstandingBytes = 10 },
		"MaxUnreadTotal":      func(o *Options) { o.MaxUnreadTotal = -1 },
		"MaxNodes":            func(o *Options) { o.MaxNodes = -1 },
		"MaxData":             func(o *Options) { o.MaxData = -1 },
		"MaxWatches":          func(o *Options) { o.MaxWatches = -1 },
		"MaxWatchesPerConn":   func(o *Options) { o.MaxWatchesPerConn = -1 },
		"MaxSessions":         func(o *Options) { o.MaxSessions = -1 },
		"MaxReply":            func(o *Options) { o.MaxReply = -1 },
		"KeepAlive":           func(o *Options) { o.KeepAlive = time.Millisecond },
	} {
		var opts Options
		set(&opts)
		if _, err := New(opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
}
