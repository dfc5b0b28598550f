package zklock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestSemaphore checks that n clients hold, that the next one waits, and that waiters
// are granted in order of arrival.
func TestSemaphore(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).Semaphore("sem", 3), dial(t, srv).Semaphore("sem", 3)
		holds := []*zklock.Hold{acquire(t, a), acquire(t, b), acquire(t, a)}
		locked(t, a)
		locked(t, b)
		waiters := []<-chan *zklock.Hold{waiting(t, t.Context(), b), waiting(t, t.Context(), a), waiting(t, t.Context(), b)}
		for i, w := range waiters {
			pending(t, "all permits are taken", waiters[i:]...)
			release(t, holds[i])
			holds = append(holds, got(t, "the next one", w))
		}
		for _, h := range holds {
			if h.Token() <= 0 || h.TokenOf(a.Path()) != h.Token() {
				t.Errorf("token %d, of the path %d", h.Token(), h.TokenOf(a.Path()))
			}
		}
		for _, h := range holds[3:] {
			release(t, h)
		}
		free(t, b.Permits(3))
	})
}

// TestPermits checks that several permits are granted together or not at all, without a
// deadlock between acquires of several.
func TestPermits(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).Semaphore("sem", 5), dial(t, srv).Semaphore("sem", 5)
		three := acquire(t, a.Permits(3))
		if len(three.Nodes()) != 3 {
			t.Errorf("znodes: %v", three.Nodes())
		}
		locked(t, b.Permits(3))
		two := acquire(t, b.Permits(2))
		w := waiting(t, t.Context(), b.Permits(4))
		one := waiting(t, t.Context(), a)
		pending(t, "none is left", w, one)
		release(t, two)
		pending(t, "two are not four, and order is kept", w, one)
		release(t, three)
		release(t, got(t, "four", w))
		release(t, got(t, "one", one))
	})
}

// TestPermitsDontDeadlock checks that many acquires of most of the permits, some of
// which are cancelled, all end.
func TestPermitsDontDeadlock(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		clients := []*zklock.Client{dial(t, srv), dial(t, srv), dial(t, srv)}
		const workers, rounds = 9, 20
		done := make(chan int)
		for w := range workers {
			go func() {
				granted := 0
				l := clients[w%3].Semaphore("many", 4).Permits(1 + w%4)
				for i := range rounds {
					ctx, cancel := context.WithCancel(t.Context())
					if i%3 == 2 {
						ctx, cancel = context.WithTimeout(t.Context(), time.Duration(w+i)*time.Millisecond)
					}
					h, err := l.Acquire(ctx)
					cancel()
					if err != nil {
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						continue
					}
					granted++
					time.Sleep(time.Duration(i) * time.Millisecond)
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				done <- granted
			}()
		}
		for range workers {
			if granted := <-done; granted < rounds*2/3 {
				t.Errorf("%d of %d granted", granted, rounds)
			}
		}
	})
}

// TestTriesAtTheGate checks that tries that meet others at the gate get their permits,
// because there are enough.
func TestTriesAtTheGate(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		clients := []*zklock.Client{dial(t, srv), dial(t, srv), dial(t, srv)}
		srv.Delay(5 * time.Millisecond)
		const workers, rounds = 9, 30
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				l := clients[w%3].Semaphore("gate", workers)
				for i := range rounds {
					take := l.TryAcquire
					if (w+i)%2 == 0 {
						take = l.Acquire
					}
					h, err := take(t.Context())
					if err != nil {
						t.Errorf("worker %d, round %d: %v", w, i, err)
						return
					}
					time.Sleep(time.Duration((w*7+i*3)%11) * time.Millisecond)
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		srv.Delay(0)
	})
}

// TestPermitsDisagree checks that clients with another n are refused while a permit is
// held, and that the number changes when none is.
func TestPermitsDisagree(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv), dial(t, srv)
		h := acquire(t, a.Semaphore("n", 3))
		_, err := b.Semaphore("n", 4).Acquire(t.Context())
		wants(t, "another n", err, zklock.ErrPermits)
		free(t, b.Semaphore("n", 3))
		release(t, h)
		free(t, b.Semaphore("n", 4))
		free(t, a.Semaphore("n", 4))
	})
}

// TestSemaphoreErrors checks that an invalid semaphore returns an error when it is
// used.
func TestSemaphoreErrors(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		kazoo := dialWith(t, srv, zklock.Options{Layout: zklock.KazooLayout()})
		for what, l := range map[string]*zklock.Lock{
			"no permits":         c.Semaphore("s", 0),
			"fewer":              c.Semaphore("s", -1),
			"too many":           c.Semaphore("s", 1<<20+1),
			"none of them":       c.Semaphore("s", 3).Permits(0),
			"more than there":    c.Semaphore("s", 3).Permits(4),
			"more than a multi":  c.Semaphore("s", 1<<20).Permits(1025),
			"permits of a mutex": c.Mutex("s").Permits(1),
			"permits of an All":  zklock.All(c.Semaphore("s", 3)).Permits(1),
			"a Reentrant one":    c.Semaphore("s", 3).Reentrant(),
			"one in order":       c.Semaphore("s", 3).InOrder(),
			"kazoo's layout":     kazoo.Semaphore("s", 3),
			"and its permits":    kazoo.Semaphore("s", 3).Permits(2),
		} {
			_, err := l.Acquire(t.Context())
			wants(t, what, err, zklock.ErrInvalidLock)
			_, err = l.Inspect(t.Context())
			wants(t, what+", inspected", err, zklock.ErrInvalidLock)
			_, err = l.Revoke(t.Context())
			wants(t, what+", revoked", err, zklock.ErrInvalidLock)
		}
		_, err := c.Semaphore("a//b", 1).Acquire(t.Context())
		wants(t, "a bad name", err, zklock.ErrInvalidName)
		release(t, acquire(t, c.Semaphore("largest", 1<<20).Permits(1024)))
	})
}

// TestSemaphoreShown checks that Inspect shows holders as permits, and waiters at the
// gate.
func TestSemaphoreShown(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv), dial(t, srv)
		l := a.Semaphore("shown", 2)
		if n := entries(t, l); n != 0 {
			t.Errorf("%d entries of an unused semaphore", n)
		}
		one, two := acquire(t, l), acquire(t, b.Semaphore("shown", 2))
		next, last := waiting(t, t.Context(), b.Semaphore("shown", 2)), waiting(t, t.Context(), l)
		stray := "/zklock/shown/leases/stray"
		op := srv.Dial(t)
		if _, _, err := op.Create(t.Context(), stray, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		byName, err := a.Inspect(t.Context(), "shown")
		if err != nil {
			t.Fatal(err)
		}
		found := inspect(t, l)
		if !slices.Equal(found, byName) {
			t.Errorf("by the lock %+v, by the name %+v", found, byName)
		}
		if len(found) != 5 {
			t.Fatalf("%d entries: %+v", len(found), found)
		}
		for i, e := range found {
			mode := zklock.Permit
			if i == 4 {
				mode = zklock.Stray
			}
			if e.Path != l.Path() || e.Mode != mode || e.Holder != (i < 2) {
				t.Errorf("%d: %+v", i, e)
			}
		}
		if found[0].Token != one.Token() || found[0].Node != one.Node() || found[1].Token != two.Token() {
			t.Errorf("the holders: %+v", found[:2])
		}
		remove(t, op, stray)
		release(t, one)
		release(t, two)
		release(t, got(t, "the next", next))
		release(t, got(t, "the last", last))
	})
}

// TestPermitsShown: an attempt for several permits that waits for room holds none
// of them, even if some would fit, and nobody asks it to give back any.
func TestPermitsShown(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv), dial(t, srv)
		one, two := acquire(t, a.Semaphore("shown", 5).Permits(2)), acquire(t, a.Semaphore("shown", 5).Permits(2))
		next := waiting(t, t.Context(), b.Semaphore("shown", 5).Permits(2))
		found := inspect(t, b.Semaphore("shown", 5))
		if len(found) != 5 {
			t.Fatalf("%d entries: %+v", len(found), found)
		}
		for i, e := range found {
			if e.Holder != (i < 4) {
				t.Errorf("%d: %+v", i, e)
			}
		}
		asked, err := b.Semaphore("shown", 5).Revoke(t.Context())
		if err != nil || len(asked) != 4 || asked[3].Token != two.Token() {
			t.Errorf("asked %+v, %v; want the holders' 4 permits", asked, err)
		}
		release(t, one)
		release(t, two)
		h := got(t, "the next", next)
		select {
		case <-h.Revoked():
			t.Error("the one that waited was asked to give back what it did not have")
		default:
		}
		release(t, h)
	})
}

// TestSemaphoreOfCurator: permits that Curator's wrote count, and without a number
// next to them, are all shown as held.
func TestSemaphoreOfCurator(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		for _, dir := range []string{"/cur", "/cur/leases", "/cur/locks"} {
			if _, _, err := op.Create(t.Context(), dir, nil, nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
		}
		lease := "/cur/leases/_c_01234567-89ab-cdef-0123-456789abcdef-lease-"
		one, two := foreign(t, op, lease, "10.0.0.1"), foreign(t, op, lease, "10.0.0.2")
		found, err := c.Inspect(t.Context(), "/cur")
		if err != nil || len(found) != 2 || !found[0].Holder || !found[1].Holder || found[1].Data != "10.0.0.2" {
			t.Errorf("%+v, %v", found, err)
		}
		locked(t, c.Semaphore("/cur", 2))
		w := waiting(t, t.Context(), c.Semaphore("/cur", 2))
		pending(t, "after Curator's", w)
		remove(t, op, one)
		release(t, got(t, "a permit", w))
		remove(t, op, two)
	})
}

// TestSemaphoreRepliesLost: the outcome is exact whichever answer is lost.
func TestSemaphoreRepliesLost(t *testing.T) {
	for _, op := range []string{"create2", "multi", "getChildren2", "getData", "setData", "delete"} {
		for skip := range 3 {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				a, b := dial(t, srv).Semaphore("lost", 2), dial(t, srv).Semaphore("lost", 2)
				f := srv.DropReply(zktest.Match{Op: op, Skip: skip})
				two := acquire(t, a.Permits(2))
				w := waiting(t, t.Context(), b)
				time.Sleep(timeout / 4)
				pending(t, op+" lost", w)
				release(t, two)
				release(t, <-w)
				f.Stop()
			})
		}
	}
}
