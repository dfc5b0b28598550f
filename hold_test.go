package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestHoldString checks that a hold in a log shows its lock and its token.
func TestHoldString(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		h := acquire(t, c.Mutex("reports/nightly"))
		if got, want := fmt.Sprint(h), fmt.Sprintf("/zklock/reports/nightly (token %d)", h.Token()); got != want {
			t.Errorf("the hold is %q, want %q", got, want)
		}
		all := zklock.All(c.Semaphore("a", 2), c.Semaphore("b", 2))
		if h := acquire(t, all); fmt.Sprint(h) != all.Path() {
			t.Errorf("a hold without a common token is %q, want %q", h, all.Path())
		}
	})
}

// TestReleaseAsync checks that a release that does not wait ends the hold at once, is sent, and
// can be waited for afterwards.
func TestReleaseAsync(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.Mutex("async")
		h := acquire(t, l)
		srv.Delay(10 * time.Millisecond)
		begun := time.Now()
		if err := h.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
		if err := h.Err(); !errors.Is(err, zklock.ErrReleased) {
			t.Errorf("the hold says %v", err)
		}
		if err := h.ReleaseAsync(); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := h.Release(t.Context()); err != nil || time.Since(begun) < 10*time.Millisecond {
			t.Errorf("waited for after %v: %v", time.Since(begun), err)
		}
		srv.Delay(0)
		if _, _, err := srv.Dial(t).Get(t.Context(), h.Node()); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("its znode: %v", err)
		}
	})
}

// TestReleaseAsyncLost checks that ReleaseAsync reports a lost hold, and that a release whose
// reply is lost is repeated.
func TestReleaseAsyncLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		h := acquire(t, c.Mutex("async"))
		srv.DropReply(zktest.Match{})
		_ = h.ReleaseAsync()
		if err := h.Release(t.Context()); err != nil {
			t.Errorf("with a lost answer: %v", err)
		}
		h = acquire(t, c.Mutex("async"))
		remove(t, srv.Dial(t), h.Node())
		<-h.Done()
		if err := h.ReleaseAsync(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("of a lost hold: %v", err)
		}
	})
}

// TestReleaseAndAcquire checks that a release that does not wait and the next acquire take one
// round trip together, of the same lock and of another, with increasing tokens.
func TestReleaseAndAcquire(t *testing.T) {
	const latency = 10 * time.Millisecond // one way
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		acquire(t, c.Mutex("other")).Release(t.Context()) // creates its parent
		h := acquire(t, c.Mutex("async"))
		srv.Delay(latency)
		for i := range 20 {
			name := "async"
			if i%4 == 3 {
				name = "other"
			}
			begun, token := time.Now(), h.Token()
			if err := h.ReleaseAsync(); err != nil {
				t.Fatal(err)
			}
			h = acquire(t, c.Mutex(name))
			if took := time.Since(begun); took > 2*latency {
				t.Errorf("round %d took %v", i, took)
			}
			if h.Token() <= token {
				t.Errorf("round %d: token %d after %d", i, h.Token(), token)
			}
		}
		srv.Delay(0)
		release(t, h)
	})
}

// TestSoleUse checks that a client that is the only user of a lock acquires it without listing
// the queue. If the znode of the lock is deleted and created again, an entry of another client
// may be ahead although the sequence numbers are successive. The client waits for it.
func TestSoleUse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, other, z := dial(t, srv), dial(t, srv), dialZK(t, srv)
		l := c.Mutex("sole")
		use := func(l *zklock.Lock, times int) {
			for range times {
				release(t, acquire(t, l))
			}
		}
		const learns, more = 5, 6
		use(l, learns)
		lists := srv.CutAfter(zktest.Match{Op: "getChildren2", Path: "/zklock/sole", Times: -1})
		use(l, more)
		lists.Stop()
		if n := lists.Count(); n > 0 {
			t.Errorf("%d listings of a lock that only one client uses", n)
		}
		remove(t, z, "/zklock/sole")
		use(other.Mutex("sole"), learns+more-1)
		h := acquire(t, other.Mutex("sole"))
		if !strings.HasSuffix(h.Node(), fmt.Sprintf("%010d", learns+more-1)) {
			t.Fatalf("%s does not have the number of the client's last entry", h.Node())
		}
		next := waiting(t, t.Context(), l)
		pending(t, "another client holds the lock", next)
		release(t, h)
		release(t, <-next)
		if n := entries(t, l); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// TestSoleUseOfSharedSession checks that a client lists the queue if other code uses its
// session, because that code can end the client's watches.
func TestSoleUseOfSharedSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		z := dialZK(t, srv)
		c := zklock.New(z, nil)
		defer c.Close()
		for range 10 {
			release(t, acquire(t, c.Mutex("sole")))
		}
		if err := z.RemoveWatches(t.Context(), "/zklock/sole", zk.WatchKindAny); !errors.Is(err, zk.ErrNoWatcher) {
			t.Errorf("removed watches of a lock: %v", err)
		}
	})
}

// TestSoleUseWatchesAreBounded checks the number of watches on locks that a client has used, also
// over several connections of one session.
func TestSoleUseWatchesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		for round := range 3 {
			for i := range 100 {
				for range 5 {
					release(t, acquire(t, c.Mutex(fmt.Sprintf("sole-%d-%d", round, i))))
				}
			}
			if n := srv.Server().Stats().Watches; n < 50 || n > 100 {
				t.Errorf("round %d: %d watches", round, n)
			}
			srv.CutConnections()
		}
	})
}

// TestHandOverInMemory checks that a release grants the lock to the next waiter of the same
// client before a server knows, in order and with its own token, and that a waiter of another
// client between them keeps its turn.
func TestHandOverInMemory(t *testing.T) {
	const latency = 10 * time.Millisecond
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		h := acquire(t, c.Mutex("memory"))
		var mu sync.Mutex
		var order []string
		var tokens []int64
		var all sync.WaitGroup
		wait := func(name string, c *zklock.Client) {
			all.Go(func() {
				h, err := c.Mutex("memory").Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order, tokens = append(order, name), append(tokens, h.Token())
				mu.Unlock()
				_ = h.ReleaseAsync()
			})
			time.Sleep(time.Second) // it is in the queue
		}
		for i := range 3 {
			wait(fmt.Sprint("mine", i), c)
		}
		wait("other", other)
		wait("mine3", c)
		srv.Delay(latency)
		begun := time.Now()
		if err := h.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond) // the goroutines have run
		mu.Lock()
		if len(order) != 3 {
			t.Errorf("%v after %v", order, time.Since(begun))
		}
		mu.Unlock()
		all.Wait()
		if got := fmt.Sprint(order); got != "[mine0 mine1 mine2 other mine3]" {
			t.Errorf("granted in the order %s", got)
		}
		for i := range tokens {
			if last := append([]int64{h.Token()}, tokens...)[i]; tokens[i] <= last {
				t.Errorf("token %d after %d", tokens[i], last)
			}
		}
		srv.Delay(0)
	})
}

// TestHandOverCancelled checks that a cancelled waiter is skipped.
func TestHandOverCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		l := dial(t, srv).Mutex("cancelled")
		h := acquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		first, next := waiting(t, ctx, l), waiting(t, t.Context(), l)
		cancel()
		if <-first != nil {
			t.Error("a cancelled waiter was granted")
		}
		pending(t, "the end of a waiter", next)
		release(t, h)
		release(t, got(t, "the next", next))
	})
}

// TestHandOverGuard checks that the lock is not handed over in memory while a guarded write has
// no answer. The servers apply the write as long as the znode exists, and so could apply it after
// the next grant.
func TestHandOverGuard(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.Mutex("guarded")
		op := srv.Dial(t)
		if _, _, err := op.Create(t.Context(), "/written", []byte("first"), nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		h := acquire(t, l)
		next := waiting(t, t.Context(), l)
		var all sync.WaitGroup
		time.Sleep(time.Second)
		srv.Delay(10 * time.Millisecond)
		all.Go(func() {
			if err := h.Guard(t.Context(), zk.SetOp("/written", []byte("second"), -1)); err != nil {
				t.Errorf("guard: %v", err)
			}
		})
		time.Sleep(time.Nanosecond) // it is in flight
		begun := time.Now()
		if err := h.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		mine := <-next
		if took := time.Since(begun); took < 10*time.Millisecond {
			t.Errorf("granted %v after the release", took)
		}
		if data, _, err := op.Get(t.Context(), "/written"); err != nil || string(data) != "second" {
			t.Errorf("the next owner finds %q, %v", data, err)
		}
		all.Wait()
		srv.Delay(0)
		release(t, mine)
	})
}

// TestHandOverNextToReader checks that the release of a reader does not grant a writer of the
// same client while a downgraded hold exists. That hold may be of this client or another, and the
// reader may not know it.
func TestHandOverNextToReader(t *testing.T) {
	for _, other := range []bool{false, true} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			c := dial(t, srv)
			l, first := c.RWMutex("next-to"), c.RWMutex("next-to")
			if other {
				first = dial(t, srv).RWMutex("next-to")
			}
			h := acquire(t, first.Writer())
			reader := waiting(t, t.Context(), l.Reader())
			pending(t, "after a writer", reader)
			if err := h.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := got(t, "the reader", reader)
			writer := waiting(t, t.Context(), l.Writer())
			pending(t, "the writer after two readers", writer)
			release(t, r)
			pending(t, "the writer after the downgraded hold", writer)
			release(t, h)
			release(t, got(t, "the writer", writer))
		})
	}
}

// TestHoldEndsInTimeIfServersAreSilent checks that, if the servers are silent, the hold reports
// its loss before the server grants the lock to another client, and that the server does so
// within the session timeout and 100 ms.
func TestHoldEndsInTimeIfServersAreSilent(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		h := acquire(t, dial(t, srv).Mutex("silence"))
		time.Sleep(10 * timeout) // heartbeats extend the deadline
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

// TestSuspendEndsHold checks that the first check after a suspend reports the loss, before any
// goroutine or timer could have run.
func TestSuspendEndsHold(t *testing.T) {
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

// TestServerRestart checks that a hold survives a restart of the server, even after a loss of
// power, and that tokens continue to increase.
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

// TestHoldIsLostIfServerLosesData checks that the client continues, and that tokens continue to
// increase.
func TestHoldIsLostIfServerLosesData(t *testing.T) {
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

// TestReleaseReportsEndedSession checks that a release reports the loss if another client has
// ended the session while the client was disconnected, and another client holds the lock.
func TestReleaseReportsEndedSession(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		mine := srv.Route(t)
		c := dialWith(t, srv, zklock.Options{DialContext: mine.DialContext})
		other := dial(t, srv).Mutex("ended")
		disconnect := func(h *zklock.Hold) *zklock.Hold {
			mine.Refuse(true)
			if err := mine.ExpireSession(h.Session()); err != nil {
				t.Fatal(err)
			}
			next := acquire(t, other)
			synctest.Wait() // the client notices that the connection is lost
			if h.Err() != nil {
				t.Fatalf("reported before the release: %v", h.Err())
			}
			time.AfterFunc(100*time.Millisecond, func() { mine.Refuse(false) })
			return next
		}
		ended := func(what string, err error) {
			if !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zk.ErrSessionExpired) {
				t.Errorf("%s: %v", what, err)
			}
		}
		h := acquire(t, c.Mutex("ended"))
		next := disconnect(h)
		ended("Release", h.Release(t.Context()))
		release(t, next)
		ended("Do", zklock.Do(t.Context(), c.Mutex("ended"), func(_ context.Context, h *zklock.Hold) error {
			next = disconnect(h)
			return nil
		}))
		release(t, next)
	})
}

// TestOverdueHeartbeatIsReported checks that an overdue heartbeat is reported, and its recovery.
func TestOverdueHeartbeatIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		told := make(chan error, 10)
		c := dialWith(t, srv, zklock.Options{
			OnJeopardy: func(e zklock.Event) { told <- e.Err },
		})
		h := acquire(t, c.Mutex("jeopardy"))
		time.Sleep(timeout / 4) // a heartbeat is answered
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

// TestRefusedReleaseIsRepeated checks that the waiter is granted within twice the session timeout
// after the servers permit a delete that they had refused.
func TestRefusedReleaseIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		const path = "/stubborn"
		root := undeletable(t, srv, path)
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

// TestReleaseAndCloseWhileCutOff checks that a release that the servers did not confirm
// does not claim that the lock is free.
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

// TestUnreadableEntry checks that an entry that the client may no longer read, because of its
// ACL, ends its own hold and no other.
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

// TestManyDeletedEntriesAreReported checks that holders whose entries are deleted at the same
// time report the loss within a round trip.
func TestManyDeletedEntriesAreReported(t *testing.T) {
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

// TestDeletionIsReportedInTime checks that a holder that did not wait, and has no other
// request in flight, reports that its entry was deleted: within a round trip if the
// hold is 100 ms old, and otherwise at the end of these 100 ms. The same applies if another
// client creates a znode with the name of the entry right after the deletion.
func TestDeletionIsReportedInTime(t *testing.T) {
	for _, age := range []time.Duration{0, 40 * time.Millisecond, 99 * time.Millisecond, 130 * time.Millisecond, 2 * timeout} {
		for _, again := range []bool{false, true} {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				c, op := dial(t, srv), srv.Dial(t)
				const oneWay = 10 * time.Millisecond
				srv.Delay(oneWay)
				h := acquire(t, c.Mutex("told"))
				held := time.Now()
				time.Sleep(age)
				op.Go(zk.DeleteOp(h.Node(), -1), nil)
				if again {
					op.Go(zk.CreateOp(h.Node(), nil, nil, zk.ModeEphemeral), nil)
				}
				deleted := time.Now().Add(oneWay)
				select {
				case <-h.Done():
				case <-time.After(4 * timeout):
					t.Fatalf("after %v, another znode %v: not told: %v", age, again, h.Err())
				}
				by := deleted.Add(2 * oneWay)
				if watched := held.Add(100*time.Millisecond + 2*oneWay); by.Before(watched) {
					by = watched
				}
				if late := time.Since(by); late > time.Millisecond || !errors.Is(h.Err(), zklock.ErrDeleted) {
					t.Errorf("after %v, another znode %v: told %v too late: %v", age, again, late, h.Err())
				}
			})
		}
	}
}

// TestBrokenHoldIsNotHandedOver checks that, after a break, the next waiter of the same client is
// granted in memory only if no other client is ahead of it.
func TestBrokenHoldIsNotHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b, op := dial(t, srv), dial(t, srv), srv.Dial(t)
		h := acquire(t, a.Mutex("broken"))
		other := waiting(t, t.Context(), b.Mutex("broken"))
		next := waiting(t, t.Context(), a.Mutex("broken"))
		remove(t, op, h.Node())
		between := got(t, "the other client's", other)
		if err := h.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("released: %v", err)
		}
		pending(t, "a second hold", next)
		release(t, between)
		release(t, got(t, "the next", next))
	})
}

// TestBrokenLocalHandoff checks that the hold that a broken one was handed off to
// reports the loss within a round trip, and that the release that deletes the znode
// reports it.
func TestBrokenLocalHandoff(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		l := c.Mutex("broken-local").LocalHandoff(2)
		h := acquire(t, l)
		waiter := waiting(t, t.Context(), l)
		remove(t, op, h.Node())
		release(t, h) // hands it off without a request
		next := got(t, "the next", waiter)
		synctest.Wait()
		if !errors.Is(next.Err(), zklock.ErrDeleted) {
			t.Errorf("passed on: %v", next.Err())
		}
		h = acquire(t, l)
		remove(t, op, h.Node())
		if err := h.Release(t.Context()); !errors.Is(err, zklock.ErrDeleted) {
			t.Errorf("released: %v", err)
		}
	})
}

// TestBrokenHoldsThatChanged checks that the last release of a hold that was shared,
// downgraded, or re-entered reports that another client had deleted its znode, and that
// no other release does.
func TestBrokenHoldsThatChanged(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		broken := func(h *zklock.Hold) {
			t.Helper()
			remove(t, op, h.Node())
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
		release(t, reenter(t, outer, c.Mutex("changed").Reentrant()))
		broken(outer)

		// A Verify before the release detects it too.
		h := acquire(t, c.Mutex("changed"))
		remove(t, op, h.Node())
		for what, err := range map[string]error{"verified": h.Verify(t.Context()), "released": h.Release(t.Context())} {
			if !errors.Is(err, zklock.ErrDeleted) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestLossHasReason checks that errors.Is finds why a hold ended.
func TestLossHasReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		lost := make(chan error, 1)
		c := dialWith(t, srv, zklock.Options{SessionTimeout: 8 * time.Second, OnLost: func(e zklock.Event) { lost <- e.Err }})
		h, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := srv.Dial(t)
		remove(t, other, h.Node())
		if err := <-lost; !errors.Is(err, zklock.ErrDeleted) || !errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrNoQuorum) {
			t.Errorf("deleted: %v", err)
		}
		if _, err := c.Mutex("a").Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		srv.Pause()
		if err := <-lost; !errors.Is(err, zklock.ErrNoQuorum) || errors.Is(err, zklock.ErrDeleted) {
			t.Errorf("silence: %v", err)
		}
		srv.Resume()
	})
}

// TestLogLinesEscapePaths checks that a blank name is visible in the lines of each handler.
func TestLogLinesEscapePaths(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var text, object bytes.Buffer
		c := zklock.New(dialZK(t, srv), &zklock.Options{Logger: slog.New(slog.NewMultiHandler(slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&object, nil)))})
		h := acquire(t, c.Mutex("a\u2800\u202e"))
		remove(t, srv.Dial(t), h.Node())
		<-h.Done()
		synctest.Wait()
		if !strings.Contains(text.String(), `lock=/zklock/a\u2800\u202e `) || !strings.Contains(object.String(), `"lock":"/zklock/a\\u2800\\u202e"`) {
			t.Errorf("the lines are\n%s%s", &text, &object)
		}
	})
}

// panicHandler panics at each warning.
type panicHandler struct{ slog.Handler }

func (panicHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (panicHandler) Handle(context.Context, slog.Record) error        { panic("logged") }

// closePanics closes a client whose logger panics.
func closePanics(t *testing.T, c *zklock.Client) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("the handler did not panic")
		}
	}()
	c.Close()
}

// TestPanicOfLoggerClosesEachDone checks that Done of each hold closes, and that a second Close
// returns, although the handler of the logger panics at the loss of the first hold, and the
// caller recovers.
func TestPanicOfLoggerClosesEachDone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		session := dialZK(t, srv)
		c := zklock.New(session, &zklock.Options{Logger: slog.New(panicHandler{})})
		var ends []<-chan struct{}
		for _, name := range []string{"a", "b", "c"} {
			ends = append(ends, acquire(t, c.Mutex(name)).Done())
		}
		closePanics(t, c)
		synctest.Wait()
		for i, end := range ends {
			select {
			case <-end:
			default:
				t.Errorf("hold %d: Done is open after the loss", i)
			}
		}
		if err := c.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		if _, err := c.Mutex("a").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrClosed) {
			t.Errorf("an acquire after Close: %v", err)
		}
	})
}

// TestPanicOfLoggerKeepsErrorOfClose checks that a second Close reports the znodes that the first
// one could not delete, although the handler of the logger panicked in it.
func TestPanicOfLoggerKeepsErrorOfClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := zklock.New(dialZK(t, srv), &zklock.Options{Logger: slog.New(panicHandler{})})
		acquire(t, c.Mutex("a"))
		srv.Pause()
		defer srv.Resume()
		closePanics(t, c)
		if err := c.Close(); err == nil {
			t.Error("a second Close reports no znodes that are left")
		}
	})
}
