package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestTryWithReplyLost: a try whose create's answer was lost is not stopped by
// the znode that this left: nobody else has the lock.
func TestTryWithReplyLost(t *testing.T) {
	for _, reply := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			l := dial(t, srv).Mutex("try")
			release(t, acquire(t, l))
			fault := srv.DropRequest
			if reply {
				fault = srv.DropReply
			}
			f := fault(zktest.Match{Op: "create2"})
			h, err := l.TryAcquire(t.Context())
			if err != nil {
				t.Fatalf("reply %v: %v", reply, err)
			}
			<-f.Done()
			if n := entries(t, l); n != 1 {
				t.Errorf("reply %v: %d entries while held", reply, n)
			}
			release(t, h)
		})
	}
}

// TestInvalidOptions: what Dial refuses, a client on a shared session says when
// a lock is used. A drift below zero would put deadlines behind the expiry.
func TestInvalidOptions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		shared := srv.Dial(t)
		for _, drift := range []float64{-0.01, 0.5, math.NaN(), math.Inf(1)} {
			o := &zklock.Options{ClockDrift: drift, DialContext: srv.DialContext}
			if c, err := zklock.Dial(t.Context(), srv.Servers(), o); !errors.Is(err, zklock.ErrInvalidOptions) {
				t.Errorf("drift %v: dialled: %v", drift, err)
				if err == nil {
					c.Close()
				}
			}
			c := zklock.New(shared, o)
			l := c.Mutex("options")
			if _, err := l.Acquire(t.Context()); !errors.Is(err, zklock.ErrInvalidOptions) {
				t.Errorf("drift %v: acquired: %v", drift, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOptionsAreCopied: what the caller does to his slices later is his affair.
func TestOptionsAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		acl := zk.ReadACL()
		acl[0].Perms = zk.PermAll &^ zk.PermAdmin
		c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{DialContext: srv.DialContext, ACL: acl})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		acl[0].Scheme = "no-such-scheme"
		release(t, acquire(t, c.Mutex("copied")))
	})
}

// stubborn makes a lock's znode below which only the user "root" may delete, and
// returns that user's client.
func stubborn(t *testing.T, srv *zktest.Server, path string) *zk.Client {
	t.Helper()
	root := srv.Dial(t)
	if err := root.AddAuth(t.Context(), "digest", []byte("root:secret")); err != nil {
		t.Fatal(err)
	}
	acl := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead | zk.PermCreate, Scheme: "world", ID: "anyone"})
	if _, _, err := root.Create(t.Context(), path, nil, acl, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestCloseGoesOnTrying: a client on a shared session that is being closed tries
// again to delete what the servers refused at first, and says so if it fails.
func TestCloseGoesOnTrying(t *testing.T) {
	for _, mended := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			const path = "/stubborn"
			root := stubborn(t, srv, path)
			shared, err := zk.Dial(t.Context(), srv.Servers(), &zk.Options{SessionTimeout: 2 * time.Minute, DialContext: srv.DialContext})
			if err != nil {
				t.Fatal(err)
			}
			defer shared.Close()
			c := zklock.New(shared, nil)
			h := acquire(t, c.Mutex(path))
			if err := h.Release(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
				t.Fatalf("a release that is refused: %v", err)
			}
			if mended {
				time.AfterFunc(time.Second, func() { // within the close, on the bubble's clock
					if _, err := root.SetACL(t.Context(), path, zk.OpenACL(), -1); err != nil {
						t.Error(err)
					}
				})
			}
			begun := time.Now()
			err = c.Close()
			if n := entries(t, dial(t, srv).Mutex(path)); (n != 0) == mended || (err != nil) == mended {
				t.Errorf("mended %v: after a close that took %v: %d entries, %v", mended, time.Since(begun), n, err)
			}
		})
	}
}

// TestRefusedReleaseIsTriedAgain: once the servers permit again what they refused,
// who waits is granted within twice the session's timeout.
func TestRefusedReleaseIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		const path = "/stubborn"
		root := stubborn(t, srv, path)
		c := dial(t, srv)
		if err := acquire(t, c.Mutex(path)).Release(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
			t.Fatalf("a release that is refused: %v", err)
		}
		time.Sleep(timeout)
		if _, err := root.SetACL(t.Context(), path, zk.OpenACL(), -1); err != nil {
			t.Fatal(err)
		}
		healed := time.Now()
		release(t, acquire(t, dial(t, srv).Mutex(path)))
		if d := time.Since(healed); d > 2*timeout {
			t.Errorf("granted %v after the servers would have permitted it", d)
		}
	})
}

// TestReleaseAndCloseWhileCutOff: a release that the servers did not confirm does
// not claim that the lock is free.
func TestReleaseAndCloseWhileCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.Mutex("cut-off")
		h := acquire(t, l)
		srv.Refuse(true)
		srv.CutConnections()
		time.Sleep(time.Second)
		released := make(chan error)
		go func() { released <- h.Release(context.Background()) }()
		time.Sleep(time.Second)
		if err := c.Close(); !errors.Is(err, zk.ErrNotConfirmed) {
			t.Errorf("close: %v", err)
		}
		if err := <-released; !errors.Is(err, zk.ErrNotConfirmed) || !errors.Is(err, zklock.ErrClosed) {
			t.Errorf("release: %v", err)
		}
		srv.Refuse(false)
	})
}

// TestCloseTwice: a second close returns when the first one is done, with its
// outcome.
func TestCloseTwice(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, l := dial(t, srv), dial(t, srv).Mutex("twice")
		acquire(t, c.Mutex("twice"))
		srv.Delay(100 * time.Millisecond)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if n := srv.Server().Stats().Sessions; n != 1 {
					t.Errorf("%d sessions after a close", n)
				}
			})
		}
		both.Wait()
		srv.Delay(0)
		if n := entries(t, l); n != 0 {
			t.Errorf("%d entries after a close", n)
		}
	})
}

// TestHooksOfAbandonedGrants: each OnAcquire is followed by an OnRelease, also
// where the context ended at the moment of the grant.
func TestHooksOfAbandonedGrants(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var mu sync.Mutex // guards held and most
		held, grants := 0, 0
		c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
			SessionTimeout: timeout, DialContext: srv.DialContext,
			OnAcquire: func(zklock.Event) { mu.Lock(); held++; grants++; mu.Unlock() },
			OnRelease: func(zklock.Event) { mu.Lock(); held--; mu.Unlock() },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l := c.Mutex("abandoned")
		release(t, acquire(t, l))
		// The relay's delay puts the grant at the same instant as the context's end:
		// either may be seen first.
		srv.Delay(10 * time.Millisecond)
		abandoned := 0
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			h, err := l.Acquire(ctx)
			cancel()
			if err == nil {
				release(t, h)
			} else {
				abandoned++
			}
		}
		srv.Delay(0)
		time.Sleep(timeout)
		mu.Lock()
		defer mu.Unlock()
		t.Logf("%d grants, %d of 200 acquires abandoned", grants, abandoned)
		if held != 0 {
			t.Errorf("%d of %d grants were not followed by a release", held, grants)
		}
	})
}

// TestUnreadableEntry: an entry whose ACL somebody changed, so that it can't be
// asked for any more, ends its own hold and no other.
func TestUnreadableEntry(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		var holds []*zklock.Hold
		for _, name := range []string{"a", "b", "c"} {
			holds = append(holds, acquire(t, c.Mutex("unreadable/"+name)))
		}
		acl := []zk.ACL{{Perms: zk.PermWrite, Scheme: "world", ID: "anyone"}}
		if _, err := op.SetACL(t.Context(), holds[1].Node(), acl, -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * timeout)
		for i, h := range holds {
			if err := h.Err(); (err != nil) != (i == 1) || i == 1 && !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("hold %d: %v", i, err)
			}
		}
	})
}

// TestManyDeleted: holders whose entries are deleted all at once are told within a
// round trip.
func TestManyDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		var holds []*zklock.Hold
		for i := range 200 {
			holds = append(holds, acquire(t, c.Mutex(fmt.Sprintf("many/%d", i))))
		}
		srv.Delay(10 * time.Millisecond)
		time.Sleep(timeout)
		for i, h := range holds {
			if i%5 > 0 {
				op.Go(zk.DeleteOp(h.Node(), -1), nil)
			}
		}
		const roundTrip = 20 * time.Millisecond
		time.Sleep(roundTrip + time.Millisecond)
		for i, h := range holds {
			if (h.Err() != nil) != (i%5 > 0) {
				t.Fatalf("hold %d: %v", i, h.Err())
			}
		}
	})
}

// TestDeletionIsToldInTime: a holder that did not wait, and has no other request under
// way, is told that its entry was deleted: within a round trip from when the hold is
// 100 ms old, and by then if it is younger.
func TestDeletionIsToldInTime(t *testing.T) {
	for _, age := range []time.Duration{0, 40 * time.Millisecond, 99 * time.Millisecond, 130 * time.Millisecond, 2 * timeout} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			c, op := dial(t, srv), srv.Dial(t)
			const oneWay = 10 * time.Millisecond
			srv.Delay(oneWay)
			h := acquire(t, c.Mutex("told"))
			held := time.Now()
			time.Sleep(age)
			op.Go(zk.DeleteOp(h.Node(), -1), nil)
			deleted := time.Now().Add(oneWay)
			<-h.Done()
			by := deleted.Add(2 * oneWay)
			if watched := held.Add(100*time.Millisecond + 2*oneWay); by.Before(watched) {
				by = watched
			}
			if late := time.Since(by); late > time.Millisecond || !errors.Is(h.Err(), zklock.ErrDeleted) {
				t.Errorf("after %v: told %v too late: %v", age, late, h.Err())
			}
		})
	}
}

// TestBrokenHoldIsNotHandedOver: the next waiter of the same client gets the lock in
// memory only where no other client is ahead of it, although the hold was broken.
func TestBrokenHoldIsNotHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b, op := dial(t, srv), dial(t, srv), srv.Dial(t)
		h := acquire(t, a.Mutex("broken"))
		other := waiting(t, t.Context(), b.Mutex("broken"))
		next := waiting(t, t.Context(), a.Mutex("broken"))
		if err := op.Delete(t.Context(), h.Node(), -1); err != nil {
			t.Fatal(err)
		}
		between := got(t, "the other client's", other)
		if err := h.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("released: %v", err)
		}
		pending(t, "a second hold", next)
		release(t, between)
		release(t, got(t, "the next", next))
	})
}

// TestBrokenLocalHold: the hold that a broken one was passed on to is told within a
// round trip, and the release that deletes the znode reports the loss.
func TestBrokenLocalHold(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		l := c.Mutex("broken-local").Local(2)
		h := acquire(t, l)
		waiter := waiting(t, t.Context(), l)
		if err := op.Delete(t.Context(), h.Node(), -1); err != nil {
			t.Fatal(err)
		}
		release(t, h) // passes it on, and does not ask the servers
		next := got(t, "the next", waiter)
		synctest.Wait()
		if !errors.Is(next.Err(), zklock.ErrDeleted) {
			t.Errorf("passed on: %v", next.Err())
		}
		h = acquire(t, l)
		if err := op.Delete(t.Context(), h.Node(), -1); err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); !errors.Is(err, zklock.ErrDeleted) {
			t.Errorf("released: %v", err)
		}
	})
}

// TestBrokenHoldsThatChanged: the last release of a hold that was shared, downgraded, or
// re-entered reports that somebody had deleted its znode, and no other hold's does.
func TestBrokenHoldsThatChanged(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		broken := func(h *zklock.Hold) {
			t.Helper()
			if err := op.Delete(t.Context(), h.Node(), -1); err != nil {
				t.Fatal(err)
			}
			if err := h.Release(t.Context()); !errors.Is(err, zklock.ErrDeleted) {
				t.Errorf("released: %v", err)
			}
		}
		rw := c.RWMutex("changed")
		first, second := acquire(t, rw.Reader()), acquire(t, rw.Reader())
		broken(first)
		release(t, second)

		writer := acquire(t, rw.Writer())
		if err := writer.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		broken(writer)

		outer := acquire(t, c.Mutex("changed").Reentrant())
		release(t, again(t, outer, c.Mutex("changed").Reentrant()))
		broken(outer)

		// A verification before the release finds it out as well.
		h := acquire(t, c.Mutex("changed"))
		if err := op.Delete(t.Context(), h.Node(), -1); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{"verified": h.Verify(t.Context()), "released": h.Release(t.Context())} {
			if !errors.Is(err, zklock.ErrDeleted) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
