package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
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

// TestManyDeleted: entries that are deleted all at once are found out in a few
// round trips, not in one each.
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
		time.Sleep(timeout/8 + 10*roundTrip)
		for i, h := range holds {
			if (h.Err() != nil) != (i%5 > 0) {
				t.Fatalf("hold %d: %v", i, h.Err())
			}
		}
	})
}
