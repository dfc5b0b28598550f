package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/lockconform"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestLocks holds the locks' promises against the embedded server, on the
// bubble's clock.
func TestLocks(t *testing.T) {
	lockconform.InBubbles(t, func(t *testing.T) lockconform.Target {
		srv := zktest.Start(t)
		return lockconform.Target{Servers: srv.Servers(), DialContext: srv.DialContext, SessionTimeout: 4 * time.Second}
	})
}

// TestLocksInRealTime does the same with real goroutines racing in real time.
func TestLocksInRealTime(t *testing.T) {
	srv := zktest.Start(t)
	lockconform.Run(t, lockconform.Target{Servers: srv.Servers(), DialContext: srv.DialContext, SessionTimeout: 16 * time.Second, Expiry: 6 * time.Second})
}

// TestKinds holds every other kind of exclusive lock, in every layout, to the
// same promises.
func TestKinds(t *testing.T) {
	for _, kind := range lockconform.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			lockconform.InBubbles(t, func(t *testing.T) lockconform.Target {
				srv := zktest.Start(t)
				return lockconform.Target{Servers: srv.Servers(), DialContext: srv.DialContext, SessionTimeout: timeout, Kind: kind}
			})
		})
	}
}

const timeout = 4 * time.Second

// bubble runs f in a synctest bubble with a server.
func bubble(t *testing.T, f func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, zktest.Start(t)) })
}

func dial(t *testing.T, srv *zktest.Server) *zklock.Client {
	t.Helper()
	c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{SessionTimeout: timeout, DialContext: srv.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func acquire(t *testing.T, l *zklock.Lock) *zklock.Hold {
	t.Helper()
	h, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func release(t *testing.T, h *zklock.Hold) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func entries(t *testing.T, l *zklock.Lock) int {
	t.Helper()
	found, err := l.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestRepliesLost: whichever answer of an acquire or a release is lost with the
// connection, the outcome is exact: one entry while held, none after.
func TestRepliesLost(t *testing.T) {
	for _, op := range []string{"create2", "createContainer", "getChildren", "getChildren2", "delete", "multi", "connect"} {
		for _, reply := range []bool{true, false} {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				l, other := dial(t, srv).Mutex("lost"), dial(t, srv).Mutex("lost")
				fault := srv.DropRequest
				if reply {
					fault = srv.DropReply
				}
				if op == "connect" {
					srv.CutConnections()
				}
				f := fault(zktest.Match{Op: op})
				defer f.Stop()
				h := acquire(t, l)
				if n := entries(t, other); n != 1 && op != "create2" {
					t.Errorf("%s lost (reply %v): %d entries while held", op, reply, n)
				}
				release(t, h)
				again := acquire(t, other)
				if again.Token() <= h.Token() {
					t.Errorf("%s lost: token %d after %d", op, again.Token(), h.Token())
				}
				if err := h.Err(); !errors.Is(err, zklock.ErrReleased) {
					t.Errorf("%s lost (reply %v): %v", op, reply, err)
				}
				release(t, again)
				time.Sleep(2 * timeout) // on the bubble's clock: all that goes on in the background is over
				if n := entries(t, l); n != 0 {
					t.Errorf("%s lost (reply %v): %d entries are left", op, reply, n)
				}
			})
		}
	}
}

// TestCancelWithReplyLost: a cancelled acquire whose create's answer was lost
// leaves nothing behind.
func TestCancelWithReplyLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		l, other := dial(t, srv).Mutex("orphan"), dial(t, srv).Mutex("orphan")
		release(t, acquire(t, other))
		f := srv.DropReply(zktest.Match{Op: "create2"})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-f.Done()
			cancel()
		}()
		if h, err := l.Acquire(ctx); err == nil {
			release(t, h)
		}
		time.Sleep(timeout)
		if n := entries(t, other); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// TestSilence: when the network falls silent, the hold says lost before the
// server gives the lock away, and the server does that within the session's
// timeout and 100 ms.
func TestSilence(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		h := acquire(t, dial(t, srv).Mutex("silence"))
		time.Sleep(10 * timeout) // heartbeats move the deadline
		if h.Err() != nil || h.Remaining() < timeout/3 {
			t.Fatalf("after ten timeouts: %v, %v left", h.Err(), h.Remaining())
		}
		begun := time.Now()
		srv.Blackhole(true)
		<-h.Done()
		lost := time.Since(begun)
		expired := make(chan struct{})
		go func() {
			for srv.Server().Stats().Sessions > 0 {
				time.Sleep(time.Millisecond)
			}
			close(expired)
		}()
		<-expired
		granted := time.Since(begun)
		if !errors.Is(h.Err(), zklock.ErrLost) || lost >= granted || granted > timeout+100*time.Millisecond {
			t.Errorf("lost after %v, given away after %v: %v", lost, granted, h.Err())
		}
		t.Logf("lost after %v, given away after %v", lost, granted)
		srv.Blackhole(false)
	})
}

// TestSuspend: after a suspend, the first look says lost, before any goroutine
// or timer could have run.
func TestSuspend(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		h := acquire(t, dial(t, srv).Mutex("suspend"))
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		boottime.Suspend(timeout)
		if err := h.Err(); !errors.Is(err, zklock.ErrLost) || h.Remaining() != 0 {
			t.Errorf("after a suspend: %v, %v left", err, h.Remaining())
		}
		select {
		case <-h.Done():
		default:
			t.Error("Done is open after a suspend")
		}
	})
}

// TestServerRestart: a hold survives the server's restart, by loss of power even,
// and tokens go on growing.
func TestServerRestart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		l, other := dial(t, srv).Mutex("restart"), dial(t, srv).Mutex("restart")
		h := acquire(t, l)
		for range 5 {
			srv.Crash()
			time.Sleep(timeout / 4)
			srv.Restart(t)
			if err := h.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := other.TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
				t.Fatalf("trying a lock that is held: %v", err)
			}
		}
		release(t, h)
		next := acquire(t, other)
		if next.Token() <= h.Token() {
			t.Errorf("token %d after %d", next.Token(), h.Token())
		}
	})
}

// TestServerForgets: a server that lost everything knows no session; the hold is
// lost, the client goes on, and tokens grow all the same.
func TestServerForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.Volatile)
		l := dial(t, srv).Mutex("forget")
		h := acquire(t, l)
		time.Sleep(time.Second)
		srv.Restart(t)
		<-h.Done()
		if !errors.Is(h.Err(), zklock.ErrLost) {
			t.Errorf("%v", h.Err())
		}
		next := acquire(t, l)
		if next.Token() <= h.Token() {
			t.Errorf("token %d after %d", next.Token(), h.Token())
		}
	})
}

// TestReconnects: connections that are cut now and then lose no hold and no turn.
func TestReconnects(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		l, other := dial(t, srv).Mutex("cut"), dial(t, srv).Mutex("cut")
		last := int64(0)
		for i := range 60 {
			lock := []*zklock.Lock{l, other}[i%2]
			if i%3 == 0 {
				srv.CutConnections()
			}
			h := acquire(t, lock)
			if h.Token() <= last {
				t.Fatalf("token %d after %d", h.Token(), last)
			}
			last = h.Token()
			if i%3 == 1 {
				srv.CutConnections()
			}
			time.Sleep(timeout / 8)
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			release(t, h)
		}
	})
}

// TestJeopardy: an overdue heartbeat is told, and its recovery.
func TestJeopardy(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		told := make(chan error, 10)
		c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
			SessionTimeout: timeout, DialContext: srv.DialContext,
			OnJeopardy: func(e zklock.Event) { told <- e.Err },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		h := acquire(t, c.Mutex("jeopardy"))
		srv.Delay(timeout / 4)
		if err := <-told; err == nil {
			t.Error("recovered first")
		}
		srv.Delay(0)
		if err := <-told; err != nil {
			t.Errorf("not recovered: %v", err)
		}
		if h.Err() != nil {
			t.Error(h.Err())
		}
	})
}

// TestManyLocks: one heartbeat covers all of a session's entries.
func TestManyLocks(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		var holds []*zklock.Hold
		for i := range 1200 {
			holds = append(holds, acquire(t, c.Mutex("many/"+string(rune('a'+i%26))+"/"+time.Duration(i).String())))
		}
		time.Sleep(3 * timeout)
		for _, h := range holds {
			if h.Err() != nil {
				t.Fatal(h.Err())
			}
		}
		op := srv.Dial(t)
		if err := op.Delete(t.Context(), holds[700].Node(), -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(timeout/8 + time.Second)
		for i, h := range holds {
			if (h.Err() != nil) != (i == 700) {
				t.Fatalf("hold %d: %v", i, h.Err())
			}
		}
	})
}

// TestAuthFailure: wrong credentials end the dial at once, and for good.
func TestAuthFailure(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
			DialContext: srv.DialContext, Auth: []zk.Auth{{Scheme: "no-such-scheme", Data: []byte("user:secret")}},
		})
		if !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("%v", err)
		}
	})
}
