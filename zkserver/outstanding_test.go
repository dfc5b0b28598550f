package zkserver

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestMaxOutstandingTotalThrottles: clients together send more requests than the limit. The
// requests wait, and the server answers all of them.
func TestMaxOutstandingTotalThrottles(t *testing.T) {
	for name, limit := range map[string]func(*Options){
		"requests": func(o *Options) { o.MaxOutstandingTotal = 10 },
		"bytes":    func(o *Options) { o.MaxOutstandingBytes = 1024 },
		"neither":  func(*Options) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts := testOptions(t)
			limit(&opts)
			s := start(t, opts)
			const clients, each = 20, 200
			var burst []byte
			for i := range each {
				burst = wire.AppendRequest(burst, int32(i), wire.OpExists, &wire.ExistsRequest{Path: "/zookeeper"})
			}
			var wg sync.WaitGroup
			release := make(chan struct{})
			go s.runOnLoop(func() { <-release }) // blocks the loop while they send
			for range clients {
				// Each ends when all its requests are answered.
				wg.Go(func() {
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
			wg.Wait()
			st := s.Stats()
			if throttled := st.RequestsThrottled > 0; throttled != (name != "neither") {
				t.Errorf("%s: throttled %d times", name, st.RequestsThrottled)
			}
			if n, b := s.requestLimit.requests.Load(), s.requestLimit.bytes.Load(); n != 0 || b != 0 {
				t.Errorf("%s: %d requests of %d bytes are still outstanding", name, n, b)
			}
		})
	}
}

// TestNonReadingClientsThrottleOnlyThemselves: clients reach the limits and read nothing. The
// server still serves other clients.
func TestNonReadingClientsThrottleOnlyThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.MaxOutstandingTotal = 100
		s := start(t, opts)
		good := login(t, s, time.Hour)
		good.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 500_000), ACL: openACL()})
		var burst []byte
		for i := range 500 {
			burst = wire.AppendRequest(burst, int32(i), wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
		}
		for range 5 {
			nonReader := login(t, s, time.Minute)
			go nonReader.nc.Write(burst) // ends with the connection
		}
		synctest.Wait()
		if n := s.requestLimit.requests.Load(); n < 100 {
			t.Errorf("%d requests are outstanding, want 100 or more", n)
		}
		for i := range 50 {
			good.create(fmt.Sprint("/n", i), wire.ModePersistent)
		}
		// Their sessions expire: the server applies none of their requests.
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if st := s.Stats(); st.Connections != 1 || s.requestLimit.requests.Load() != 0 {
			t.Errorf("%d connections, %d requests after all other sessions expired, want 1 and 0", st.Connections, s.requestLimit.requests.Load())
		}
	})
}

// TestSetWatchesIsOutstandingUntilItIsDone: a long setWatches request takes several turns of the
// loop. The server keeps the request until then, so it counts for the limits.
func TestSetWatchesIsOutstandingUntilItIsDone(t *testing.T) {
	s := start(t, Options{})
	c := login(t, s, time.Hour)
	req := &wire.SetWatches{DataWatches: []string{}, ExistWatches: make([]string, 60_000), ChildWatches: []string{}}
	for i := range req.ExistWatches {
		req.ExistWatches[i] = fmt.Sprint("/p", i)
	}
	done := make(chan struct{})
	go func() { // ends with the answer
		defer close(done)
		c.do(wire.OpSetWatches, req)
	}()
	between := 0 // turns
	for waiting := true; waiting; {
		s.runOnLoop(func() {
			for _, c := range s.loop.conns {
				if c.phase != connContinuing {
					continue
				}
				between++
				if n, b := s.requestLimit.requests.Load(), s.requestLimit.bytes.Load(); n != 1 || b < 60_000 {
					t.Errorf("%d requests of %d bytes are outstanding", n, b)
				}
			}
		})
		select {
		case <-done:
			waiting = false
		default:
		}
	}
	c.do(wire.OpPing, nil)
	s.runOnLoop(func() {})
	if n, b := s.requestLimit.requests.Load(), s.requestLimit.bytes.Load(); between == 0 || n != 0 || b != 0 {
		t.Errorf("%d turns; afterwards, %d requests of %d bytes are outstanding", between, n, b)
	}
}
