package zk

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestRepeatingFromDoneContinuesAfterExpiry checks that a caller that repeats a failed request from
// its callback gets the error of the expired session once or twice per request, and then continues
// in the next session. No request is lost, sent twice, or repeated forever.
func TestRepeatingFromDoneContinuesAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		var session, sets atomic.Int64
		session.Store(6)
		f.serve(func(c *fakeConn) {
			id := session.Add(1)
			if id == 8 { // the second connection: the session has expired
				if _, err := wire.ReadFrame(c.br, nil, 0); err == nil {
					c.send(wire.AppendRecord(nil, &wire.ConnectResponse{Password: make([]byte, 16)}))
				}
				return
			}
			c.acceptSession(id)
			for r, ok := c.read(); ok && (id != 7 || r.Op != wire.OpDelete); r, ok = c.read() {
				if r.Op == wire.OpSetData {
					sets.Add(1)
				}
				c.answer(r)
			}
		})
		c := f.client(nil)
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
				t.Fatal("a request has no result")
			}
		}
		if sets.Load() != n || tries.Load() < n || tries.Load() > 2*n {
			t.Fatalf("%d sets arrived, %d tries again; want %d and once or twice each", sets.Load(), tries.Load(), n)
		}
	})
}

// TestSlowListenerBlocksReader checks that the client stops reading while a callback does not
// return, so that a server cannot fill the client's memory.
func TestSlowListenerBlocksReader(t *testing.T) {
	for _, tt := range []struct{ pathSize, events int }{{2, 1000}, {256 << 10, 1}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeServer(t)
			var sent atomic.Int64
			f.serve(func(c *fakeConn) {
				c.acceptSession(7)
				path := "/" + strings.Repeat("a", tt.pathSize-1)
				ev := wire.AppendEvent(nil, -1, &wire.WatcherEvent{Type: 3, State: 3, Path: path})
				many := bytes.Repeat(ev, tt.events)
				for range 100 {
					if !c.send(many) {
						return
					}
					sent.Add(1)
				}
				c.serveRequests()
			})
			c := f.client(nil)
			hold := make(chan struct{})
			// The client does not call listeners on the goroutine that reads.
			c.Listen(Listener{State: func(StateChange) { <-hold }})
			time.Sleep(time.Second) // in the bubble
			if sent.Load() == 100 {
				t.Errorf("the client read %d events with paths of %d bytes while the listener was busy", 100*tt.events, tt.pathSize)
			}
			close(hold)
			time.Sleep(time.Second) // in the bubble
			if sent.Load() < 100 {
				t.Errorf("the client did not continue after the listener returned: paths of %d bytes", tt.pathSize)
			}
		})
	}
}

// TestGivenUpIfServerClosesWithoutAnswer checks that the state after a reconnection says that
// a server closed a connection before it answered the request to resume the session.
func TestGivenUpIfServerClosesWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		conns := 0
		f.serve(func(c *fakeConn) {
			switch conns++; conns {
			case 1:
				c.acceptSession(7)
				for r, ok := c.read(); ok && r.Op != wire.OpDelete; r, ok = c.read() {
					c.answer(r)
				}
			case 2:
				c.read()
			default:
				c.acceptSession(7)
				c.serveRequests()
			}
		})
		c := f.client(nil)
		connected := make(chan StateChange, 1)
		defer c.Listen(Listener{State: func(s StateChange) {
			if s.State == Connected && s.Conn > 1 {
				connected <- s
			}
		}})()
		if err := c.Delete(t.Context(), "/a", -1); !errors.Is(err, ErrConnectionLost) {
			t.Fatal(err)
		}
		if s := <-connected; s.GivenUp == 0 {
			t.Error("the client does not report it")
		}
	})
}
