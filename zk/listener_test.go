package zk

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Whoever repeats a request from its own done, until it succeeds, is told the
// end of the session once for each and goes on in the next; nothing is lost,
// sent twice, or kept going without an end.
func TestRepeatingFromDoneAcrossExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		var session, sets atomic.Int64
		session.Store(6)
		f.serve(func(c *fakeConn) {
			id := session.Add(1)
			if id == 8 { // the second connection: the session is over
				if _, err := wire.ReadFrame(c.br, nil, 0); err == nil {
					c.send(wire.AppendRecord(nil, &wire.ConnectResponse{Password: make([]byte, 16)}))
				}
				return
			}
			c.greet(id)
			for {
				r, ok := c.read()
				if !ok || id == 7 && r.Op == wire.OpDelete {
					return
				}
				if r.Op == wire.OpSetData {
					sets.Add(1)
				}
				c.oblige(r)
			}
		})
		c, err := f.dial(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		const n = 100
		tries, done := atomic.Int64{}, make(chan error, n)
		var again func(Result)
		again = func(r Result) {
			if errors.Is(r.Err, ErrSessionExpired) && Applied(r.Err) == AppliedNo {
				tries.Add(1)
				c.Go(SetOp("/a", nil, -1), again)
				return
			}
			done <- r.Err
		}
		cut := make(chan struct{})
		c.Listen(Listener{State: func(s StateChange) {
			if s.State == Disconnected { // these wait, and end with the session
				for range n {
					c.Go(SetOp("/a", nil, -1), again)
				}
				close(cut)
			}
		}})
		if err := c.Delete(t.Context(), "/a", -1); !errors.Is(err, ErrConnectionLost) {
			t.Fatal(err)
		}
		<-cut
		for range n {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(time.Minute): // in the bubble
				t.Fatal("a request never came to its end")
			}
		}
		if sets.Load() != n || tries.Load() < n || tries.Load() > 2*n {
			t.Fatalf("%d sets arrived, %d tries again; want %d and once or twice each", sets.Load(), tries.Load(), n)
		}
	})
}

// A client whose user is slow in a callback still bounds what a server makes
// it keep: nothing is read while nothing is told.
func TestSlowListenerHoldsTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		var sent atomic.Int64
		f.serve(func(c *fakeConn) {
			c.greet(7)
			ev := wire.AppendEvent(nil, -1, &wire.WatcherEvent{Type: 3, State: 3, Path: "/a"})
			var many []byte
			for range 1000 {
				many = append(many, ev...)
			}
			for range 100 {
				if !c.send(many) {
					return
				}
				sent.Add(1000)
			}
			c.obliging()
		})
		c, err := f.dial(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		// The listener is told on a goroutine of its own, not the reader's.
		c.Listen(Listener{State: func(StateChange) { <-hold }})
		time.Sleep(time.Second) // in the bubble
		if n := sent.Load(); n == 100_000 {
			t.Errorf("%d events were taken in while the listener was busy", n)
		}
		close(hold)
	})
}
