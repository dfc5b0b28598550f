package zk

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/wire"
)

func TestUnsentRequestIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		var got atomic.Int32
		f.serve(func(c *fakeConn) {
			if !c.acceptSession(7) {
				return
			}
			for r, ok := c.read(); ok && r.Op != wire.OpDelete; r, ok = c.read() { // then disconnect
				if r.Op == wire.OpSetData {
					got.Add(1)
				}
				c.answer(r)
			}
		})
		c := f.client(nil)
		if err := f.net.SetUnreachable("127.0.0.1:2181", true); err != nil {
			t.Fatal(err)
		}
		err := c.Delete(t.Context(), "/a", -1)
		if !errors.Is(err, ErrConnectionLost) || Applied(err) != AppliedUnknown {
			t.Fatalf("%v, applied %v", err, Applied(err))
		}
		_, err = c.Set(within(t, time.Second), "/a", nil, -1)
		if !errors.Is(err, context.DeadlineExceeded) || Applied(err) != AppliedNo {
			t.Fatalf("%v, applied %v", err, Applied(err))
		}
		_, err = c.DoAll(within(t, time.Second), SetOp("/a", nil, -1), SetOp("/b", nil, -1))
		if !errors.Is(err, context.DeadlineExceeded) || Applied(err) != AppliedNo {
			t.Fatalf("%v, applied %v", err, Applied(err))
		}
		if err := f.net.SetUnreachable("127.0.0.1:2181", false); err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if got.Load() != 0 {
			t.Fatal("a withdrawn request was sent")
		}
	})
}

func TestAbandonedRequestKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) {
			c.acceptSession(7)
			r, _ := c.read()
			time.Sleep(3 * time.Second) // in the bubble: after the deadline of the first request
			c.reply(r, 0, &wire.GetDataResponse{Data: []byte("late")})
			c.serveRequests()
		})
		c := f.client(nil)
		_, _, _, err := c.GetW(within(t, time.Second), "/a")
		if !errors.Is(err, context.DeadlineExceeded) || Applied(err) != AppliedUnknown {
			t.Fatalf("%v, applied %v", err, Applied(err))
		}
		data, _, err := c.Get(t.Context(), "/b")
		if err != nil || string(data) != "x" {
			t.Fatalf("%q %v", data, err)
		}
	})
}

// TestAbandonedOperationsMayBeApplied checks the error of DoAll if some operations have an answer
// at the end of the context, and others have none.
func TestAbandonedOperationsMayBeApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) {
			c.acceptSession(7)
			r, _ := c.read()
			c.answer(r)
			c.read() // without an answer
			time.Sleep(3 * time.Second)
		})
		c := f.client(nil)
		results, err := c.DoAll(within(t, time.Second), SetOp("/a", nil, -1), SetOp("/b", nil, -1))
		if results != nil || !errors.Is(err, context.DeadlineExceeded) || Applied(err) != AppliedUnknown {
			t.Fatalf("%v, %v, applied %v", results, err, Applied(err))
		}
	})
}

func TestCanceledContextSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) { c.acceptSession(7); c.serveRequests() })
		c := f.client(nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := c.Sync(ctx, "/")
		var e *Error
		if !errors.Is(err, context.Canceled) || Applied(err) != AppliedNo || !errors.As(err, &e) || e.Op != "sync" || e.Path != "/" {
			t.Fatalf("%v", err)
		}
	})
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) { c.acceptSession(7); c.serveRequests() })
		c := f.client(&Options{MaxRequest: 500})
		for _, row := range []struct {
			name string
			op   Op
			want error
		}{
			{"zero", Op{}, ErrInvalidOp},
			{"zero in multi", MultiOp(DeleteOp("/a", -1), Op{}), ErrInvalidOp},
			{"path", GetOp("a", false), ErrInvalidPath},
			{"check alone", CheckOp("/a", 1), ErrInvalidOp},
			{"ttl mode", CreateOp("/a", nil, nil, ModePersistentTTL), ErrInvalidOp},
			{"unknown mode", CreateOp("/a", nil, nil, 9), ErrInvalidOp},
			{"no ttl", CreateTTLOp("/a", nil, nil, ModePersistentTTL, time.Microsecond), ErrInvalidOp},
			{"ttl without mode", CreateTTLOp("/a", nil, nil, ModePersistent, time.Hour), ErrInvalidOp},
			{"nested", MultiOp(MultiOp()), ErrInvalidOp},
			{"nested read", MultiOp(MultiOp(GetOp("/a", false))), ErrInvalidOp},
			{"mixed", MultiOp(GetOp("/a", false), DeleteOp("/a", -1)), ErrInvalidOp},
			{"watch in multi", MultiOp(GetOp("/a", true)), ErrInvalidOp},
			{"exists in multi", MultiOp(ExistsOp("/a", false)), ErrInvalidOp},
			{"path in multi", MultiOp(DeleteOp("/a//b", -1)), ErrInvalidPath},
			{"large", SetOp("/a", make([]byte, 500), -1), ErrTooLarge},
		} {
			done := make(chan error, 1)
			c.Go(row.op, func(r Result) { done <- r.Err })
			if err := <-done; !errors.Is(err, row.want) || Applied(err) != AppliedNo {
				t.Errorf("%s: %v, want %v", row.name, err, row.want)
			}
			all, err := c.DoAll(t.Context(), GetOp("/a", false), row.op, GetOp("/a", false))
			if err != nil || all[0].Err != nil || !errors.Is(all[1].Err, row.want) || all[2].Err != nil {
				t.Errorf("%s between two others: %v, %v, want %v", row.name, all, err, row.want)
			}
		}
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCallbacksMayCallGoAndListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) { c.acceptSession(7); c.serveRequests() })
		c := f.client(nil)
		order := make(chan string, 10)
		c.Go(SyncOp("/"), func(Result) {
			c.Listen(Listener{State: func(s StateChange) { order <- s.State.String() }})
			c.Go(SyncOp("/"), func(Result) { order <- "second" })
			order <- "first"
		})
		for _, want := range []string{"first", "connected", "second"} {
			if got := <-order; got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	})
}

func TestDrainedIsCalledAfterEachRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) {
			c.acceptSession(7)
			var out []byte
			for range 3 {
				r, _ := c.read()
				out = wire.AppendEvent(out, -1, &wire.WatcherEvent{Type: 3, State: 3, Path: "/a"})
				out = wire.AppendReply(out, wire.ReplyHeader{Xid: r.Xid, Zxid: 1}, &wire.SyncResponse{Path: "/"})
			}
			c.send(out)
			c.serveRequests()
		})
		c := f.client(nil)
		synctest.Wait()
		seen := make(chan string, 20)
		stop := c.Listen(Listener{
			Event:   func(Event) { seen <- "event" },
			Drained: func() { seen <- "drained" },
		})
		for range 3 {
			c.Go(SyncOp("/"), func(Result) { seen <- "answer" })
		}
		for _, want := range []string{"event", "answer", "event", "answer", "event", "answer", "drained"} {
			if got := <-seen; got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
		stop()
		if err := c.Sync(t.Context(), "/"); err != nil || len(seen) != 0 {
			t.Fatalf("called after stop, or %v", err)
		}
	})
}

func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) {
			c.acceptSession(7)
			for _, ok := c.read(); ok; _, ok = c.read() { // no answers
			}
		})
		c := f.client(nil)
		answer := make(chan error, 1)
		c.Go(SyncOp("/"), func(r Result) { answer <- r.Err })
		before := time.Now()
		if err := c.Close(); !errors.Is(err, ErrNotConfirmed) {
			t.Fatalf("%v", err)
		}
		if d := time.Since(before); d > 6*time.Second {
			t.Fatalf("closing took %v", d)
		}
		if err := <-answer; !errors.Is(err, ErrClosed) || Applied(err) != AppliedUnknown {
			t.Fatalf("%v", err)
		}
	})
}

func TestCloseEndsDialing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) { c.acceptSession(7); c.read() }) // then disconnect
		c := f.client(nil)
		if err := f.net.SetUnreachable("127.0.0.1:2181", true); err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(t.Context(), "/"); !errors.Is(err, ErrConnectionLost) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // in the bubble: the client is dialing
		before := time.Now()
		if err := c.Close(); !errors.Is(err, ErrNotConfirmed) || time.Since(before) > time.Second {
			t.Fatalf("%v after %v", err, time.Since(before))
		}
	})
}

func TestPingsKeepAnIdleClientConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		var pings atomic.Int32
		f.serve(func(c *fakeConn) {
			c.acceptSession(7)
			for r, ok := c.read(); ok; r, ok = c.read() {
				if r.Op == wire.OpPing {
					pings.Add(1)
				}
				c.answer(r)
			}
		})
		c := f.client(nil)
		lost := make(chan struct{}, 10)
		c.Listen(Listener{State: func(s StateChange) {
			if s.State != Connected {
				lost <- struct{}{}
			}
		}})
		time.Sleep(time.Hour) // in the bubble
		// The client sends a ping every third of 20 s, which is 540 in an hour.
		if len(lost) != 0 || pings.Load() < 530 || pings.Load() > 541 {
			t.Fatalf("lost %d times, %d pings", len(lost), pings.Load())
		}
	})
}

func TestSuspendIsDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) { c.acceptSession(7); c.serveRequests() })
		c := f.client(nil)
		again := make(chan StateChange, 10)
		c.Listen(Listener{State: func(s StateChange) { again <- s }})
		first := <-again
		boottime.Suspend(time.Minute)
		if s := <-again; s.State != Disconnected {
			t.Fatalf("%+v", s)
		}
		if s := <-again; s.State != Connected || s.Conn != 2 || s.Sent-first.Sent < time.Minute {
			t.Fatalf("%+v", s)
		}
	})
}

// TestNoDeadlockWithFullBuffers: a client and a server with full write buffers must not wait for
// each other.
func TestNoDeadlockWithFullBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) {
			c.acceptSession(7)
			for r, ok := c.read(); ok; r, ok = c.read() {
				if r.Op != wire.OpGetData {
					c.answer(r)
				} else if !c.reply(r, 0, &wire.GetDataResponse{Data: make([]byte, 100<<10)}) {
					return
				}
			}
		})
		c := f.client(nil)
		done := make(chan error, 400)
		for range 200 {
			c.Go(SetOp("/a", make([]byte, 100<<10), -1), func(r Result) { done <- r.Err })
			c.Go(GetOp("/a", false), func(r Result) { done <- r.Err })
		}
		for range 400 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestHostileFramesEndOnlyTheConnection(t *testing.T) {
	frames := map[string][]byte{
		"length -1":     {0xff, 0xff, 0xff, 0xff},
		"length 0":      {0, 0, 0, 0},
		"length 3":      {0, 0, 0, 3, 1, 2, 3},
		"length 2^31-1": {0x7f, 0xff, 0xff, 0xff},
		"0xfffffff0":    {0xff, 0xff, 0xff, 0xf0},
		"short event":   {0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"unknown xid":   wire.AppendReply(nil, wire.ReplyHeader{Xid: 99}, nil),
	}
	for name, bad := range frames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t)
				first := true
				f.serve(func(c *fakeConn) {
					c.acceptSession(7)
					if first {
						first = false
						c.read()
						c.send(bad)
					}
					c.serveRequests()
				})
				c := f.client(nil)
				err := c.Sync(t.Context(), "/")
				if !errors.Is(err, ErrConnectionLost) || Applied(err) != AppliedUnknown {
					t.Fatalf("%v", err)
				}
				if err := c.Sync(t.Context(), "/"); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestReceiptCountsSuspend checks that a suspend between a request and its answer counts
// as time between Sent and Received.
func TestReceiptCountsSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) {
			c.acceptSession(1)
			r, _ := c.read()
			boottime.Suspend(time.Hour)
			c.answer(r)
			c.serveRequests()
		})
		c, err := f.dial(within(t, time.Minute), nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan Result, 1)
		c.Go(SyncOp("/"), func(r Result) { done <- r })
		if r := <-done; r.Err != nil || r.Received-r.Sent < time.Hour {
			t.Errorf("%v between Sent and Received, want at least 1h: %v", r.Received-r.Sent, r.Err)
		}
	})
}
