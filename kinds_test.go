package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestSemaphore checks that n clients hold, that the next one waits, and that waiters are granted
// in order of arrival.
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

// TestPermits checks that several permits are granted together or not at all, and that acquires
// of several permits do not deadlock.
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

// TestSimultaneousTriesGetPermits checks that simultaneous tries get their permits if there are
// enough.
func TestSimultaneousTriesGetPermits(t *testing.T) {
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

// TestOtherNumberOfPermitsIsRefused checks that clients with another n are refused while a permit
// is held, and that n can change when none is.
func TestOtherNumberOfPermitsIsRefused(t *testing.T) {
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

// TestPermitsWithoutStoredNumber checks that clients with another n are not refused if no client
// may store n, and that a client that may not read the leases is refused.
func TestPermitsWithoutStoredNumber(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		op, leases := srv.Dial(t), "/n/leases"
		allow := func(perms zk.Perm) []zk.ACL { return []zk.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}} }
		if err := op.EnsurePath(t.Context(), leases, allow(zk.PermAll&^zk.PermWrite)); err != nil {
			t.Fatal(err)
		}
		a, b := dial(t, srv), dial(t, srv)
		acquire(t, a.Semaphore("/n", 3))
		acquire(t, b.Semaphore("/n", 4))
		if _, err := op.SetACL(t.Context(), leases, allow(zk.PermAll&^zk.PermRead), -1); err != nil {
			t.Fatal(err)
		}
		_, err := b.Semaphore("/n", 4).Acquire(t.Context())
		wants(t, "without READ", err, zk.ErrNoAuth)
	})
}

// TestExhaustedSequenceNamesZnode checks that the error of an acquire without sequence numbers
// left names the znode to delete. That is not always the znode of the lock: with a resizable
// semaphore, this would also delete the size.
func TestExhaustedSequenceNamesZnode(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		op, c := srv.Dial(t), dial(t, srv)
		if err := c.Resize(t.Context(), "sized", 2); err != nil {
			t.Fatal(err)
		}
		custom := dialWith(t, srv, zklock.Options{Layout: zklock.Layout{Exclusive: "-W-"}})
		for _, test := range []struct {
			l     *zklock.Lock
			znode string
		}{
			{c.Mutex("mutex"), "/zklock/mutex"},
			{custom.Mutex("custom"), "/zklock/custom"},
			{zklock.All(c.Mutex("a"), c.Mutex("b"), c.Mutex("c")), "/zklock/b"},
			{c.Semaphore("gate", 2), "/zklock/gate/locks"},
			{c.Semaphore("leases", 2), "/zklock/leases/leases"},
			{c.ResizableSemaphore("sized"), "/zklock/sized/locks"},
		} {
			release(t, acquire(t, test.l))
			if err := srv.JumpSequence(test.znode, 1<<31-1); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err := test.l.Acquire(t.Context())
				if !errors.Is(err, zklock.ErrSequenceExhausted) || !strings.HasSuffix(err.Error(), ": "+test.znode) {
					t.Errorf("%s: %v, want the znode %s", test.l, err, test.znode)
				}
			}
			synctest.Wait() // until the entries of the failed acquires are deleted
			remove(t, op, test.znode)
			release(t, acquire(t, test.l))
		}
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

// TestInspectSemaphore checks that Inspect shows holders as permits, and waiters at the
// gate.
func TestInspectSemaphore(t *testing.T) {
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
		create(t, op, stray, nil)
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

// TestInspectWaitForSeveralPermits checks that an acquire of several permits that waits holds
// none of them, even if some would fit, and gets no release request.
func TestInspectWaitForSeveralPermits(t *testing.T) {
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

// TestSemaphoreOfCurator checks that permits of Curator's semaphore count. If no size is stored,
// all are shown as held.
func TestSemaphoreOfCurator(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		for _, dir := range []string{"/cur", "/cur/leases", "/cur/locks"} {
			create(t, op, dir, nil)
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

// TestSemaphoreRepliesLost checks that the outcome is exact, whichever reply is lost.
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

// TestAll checks that an All holds every lock or none, and that its queues share one
// token.
func TestAll(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		all := zklock.All(c.Mutex("b"), c.RWMutex("r").Reader(), c.RWMutex("w").Writer(), c.Semaphore("s", 3).Permits(2), c.Semaphore("q", 1))
		h := acquire(t, all)
		locked(t, other.Mutex("b"))
		locked(t, other.RWMutex("r").Writer())
		free(t, other.RWMutex("r").Reader())
		locked(t, other.RWMutex("w").Reader())
		locked(t, other.Semaphore("s", 3).Permits(2))
		free(t, other.Semaphore("s", 3))
		locked(t, other.Semaphore("q", 1))
		if h.Token() == 0 || len(h.Nodes()) != 6 {
			t.Errorf("token %d, znodes %v", h.Token(), h.Nodes())
		}
		for _, name := range []string{"b", "r", "/zklock/w"} {
			if h.TokenOf(name) != h.Token() {
				t.Errorf("the token of %s is %d, not %d", name, h.TokenOf(name), h.Token())
			}
		}
		q, s := h.TokenOf("q"), h.TokenOf("s")
		if q <= h.Token() || s <= q { // acquired later, in the order of the paths
			t.Errorf("the semaphores' tokens are %d and %d, the queues' %d", q, s, h.Token())
		}
		if h.TokenOf("x") != 0 || h.TokenOf("a//b") != 0 {
			t.Error("a token for a lock that it does not have")
		}
		if err := h.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, h)
		free(t, zklock.All(other.Mutex("b"), other.Mutex("r"), other.Mutex("w")))
	})
}

// TestAllOrNothing checks that, while one lock is held, a waiting or cancelled All
// keeps no other client from the semaphores, and leaves no entries.
func TestAllOrNothing(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		for _, blocked := range []*zklock.Lock{other.Mutex("a"), other.Mutex("b"), other.Semaphore("s", 2).Permits(2)} {
			h := acquire(t, blocked)
			all := zklock.All(c.Mutex("a"), c.Mutex("b"), c.Semaphore("s", 2))
			locked(t, all)
			ctx, cancel := context.WithCancel(t.Context())
			w := waiting(t, ctx, all)
			pending(t, "after "+blocked.String(), w)
			cancel()
			if <-w != nil {
				t.Fatal("a cancelled All was granted")
			}
			again := waiting(t, t.Context(), all)
			release(t, h)
			release(t, got(t, "the All", again))
		}
	})
}

// TestAllsDontDeadlock checks that Alls with locks in common, named in any order, are
// all granted, and that never two of them hold one lock.
func TestAllsDontDeadlock(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		clients := []*zklock.Client{dial(t, srv), dial(t, srv), dial(t, srv)}
		const names, workers, rounds = 5, 12, 15
		var mu sync.Mutex // guards holders
		holders := make([]int, names)
		count := func(which []int, by int) {
			mu.Lock()
			defer mu.Unlock()
			for _, i := range which {
				if holders[i] += by; holders[i] > 1 {
					t.Errorf("%d hold lock %d", holders[i], i)
				}
			}
		}
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(w)))
				for range rounds {
					which := r.Perm(names)[:1+r.IntN(3)]
					var locks []*zklock.Lock
					for _, i := range which {
						locks = append(locks, clients[w%3].Mutex(fmt.Sprint("lock", i)))
					}
					h, err := zklock.All(locks...).Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					count(which, 1)
					time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
					count(which, -1)
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}

// TestAllTimeout checks that an All in a deadlock with a program that acquires its locks one by
// one fails, and names a possible cause.
func TestAllTimeout(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: time.Minute, 5 * time.Second: 5 * time.Second} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			c := dialWith(t, srv, zklock.Options{AllTimeout: limit})
			h := acquire(t, dial(t, srv).Mutex("b"))
			begun := time.Now()
			_, err := zklock.All(c.Mutex("a"), c.Mutex("b")).Acquire(t.Context())
			wants(t, "an All that is never granted", err, context.DeadlineExceeded)
			if took := time.Since(begun); took < want || took > want+time.Second {
				t.Errorf("gave up after %v, not %v", took, want)
			}
			if err == nil || !strings.Contains(err.Error(), "deadlock") || !strings.Contains(err.Error(), "InOrder") {
				t.Errorf("the error does not help: %v", err)
			}
			_, err = zklock.All(c.Mutex("a"), c.Mutex("b")).InOrder().Acquire(t.Context())
			wants(t, "one in order", err, context.DeadlineExceeded)
			if err == nil || !strings.Contains(err.Error(), "for /zklock/b, held by ") || strings.Contains(err.Error(), "see Lock.InOrder") {
				t.Errorf("the error does not say what it waited for, or to do what was done: %v", err)
			}
			release(t, h)
		})
	}
}

// TestAllTimeoutDoesNotApply checks that a context with a deadline, a negative option, and other
// locks have no other limit.
func TestAllTimeoutDoesNotApply(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		h := acquire(t, dial(t, srv).Mutex("a"))
		c, unlimited := dial(t, srv), dialWith(t, srv, zklock.Options{AllTimeout: -1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		waiters := []<-chan *zklock.Hold{
			waiting(t, ctx, zklock.All(c.Mutex("a"))),
			waiting(t, t.Context(), zklock.All(unlimited.Mutex("a"))),
			waiting(t, t.Context(), c.Mutex("a")),
		}
		time.Sleep(30 * time.Minute)
		pending(t, "while another holds", waiters...)
		release(t, h)
		for _, w := range waiters {
			release(t, <-w)
		}
	})
}

// TestInOrder checks that InOrder acquires the locks one after another in the order of their
// paths. A program that does the same by itself cannot deadlock with it.
func TestInOrder(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		all := zklock.All(c.Mutex("c"), c.Semaphore("a-semaphore", 1), c.Mutex("a"), c.Mutex("b")).InOrder()
		b := acquire(t, other.Mutex("b"))
		w := waiting(t, t.Context(), all)
		pending(t, "after b", w)
		free(t, other.Mutex("c")) // not yet
		free(t, other.Semaphore("a-semaphore", 1))
		locked(t, other.Mutex("a")) // the first one is held
		byHand := acquire(t, other.Mutex("c"))
		release(t, byHand)
		release(t, b)
		h := got(t, "all of them", w)
		if h.Token() != 0 {
			t.Errorf("a token of locks that have none in common: %d", h.Token())
		}
		last := int64(0)
		for _, name := range []string{"a", "b", "c", "a-semaphore"} {
			if token := h.TokenOf(name); token <= last {
				t.Errorf("the token of %s is %d, after %d", name, token, last)
			} else {
				last = token
			}
			if name != "a-semaphore" {
				locked(t, other.Mutex(name))
			}
		}
		if err := h.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, h)
	})
}

// TestAllErrors checks that an invalid All returns an error when it is used.
func TestAllErrors(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		many := make([]*zklock.Lock, 257)
		for i := range many {
			many[i] = c.Mutex(fmt.Sprint("many/", i))
		}
		for what, l := range map[string]*zklock.Lock{
			"nil":                     zklock.All(c.Mutex("a"), nil),
			"one path twice":          zklock.All(c.Mutex("a"), c.Mutex("b"), c.RWMutex("/zklock/a").Reader()),
			"a semaphore's path":      zklock.All(c.Mutex("a"), c.Semaphore("a", 2)),
			"a semaphore's gate":      zklock.All(c.Mutex("a/locks"), c.Semaphore("a", 2)),
			"two clients":             zklock.All(c.Mutex("a"), other.Mutex("b")),
			"a Reentrant lock":        zklock.All(c.Mutex("a").Reentrant()),
			"a node lock":             zklock.All(c.NodeLock("a")),
			"too many":                zklock.All(many...),
			"in order within another": zklock.All(zklock.All(c.Mutex("a")).InOrder()),
			"a Reentrant All":         zklock.All(c.Mutex("a")).Reentrant(),
			"a mutex in order":        c.Mutex("a").InOrder(),
			"a bad semaphore":         zklock.All(c.Semaphore("a", 0)),
			"a bad one, in order":     zklock.All().InOrder(),
		} {
			_, err := l.Acquire(t.Context())
			wants(t, what, err, zklock.ErrInvalidLock)
			_, err = l.TryAcquire(t.Context())
			wants(t, what, err, zklock.ErrInvalidLock)
			_, err = l.Inspect(t.Context())
			wants(t, what, err, zklock.ErrInvalidLock)
			_, err = l.Revoke(t.Context())
			wants(t, what, err, zklock.ErrInvalidLock)
		}
		_, err := zklock.All(c.Mutex("a"), c.Mutex("b//c")).Acquire(t.Context())
		wants(t, "a bad name", err, zklock.ErrInvalidName)
		free(t, zklock.All(many[:256]...))
		nested := zklock.All(zklock.All(c.Mutex("a"), c.Mutex("b")), c.Mutex("d"))
		if nested.Path() != "/zklock/a + /zklock/b + /zklock/d" {
			t.Errorf("an All within an All is %s", nested)
		}
		free(t, nested)
	})
}

// TestLossOfOneZnodeEndsAll checks that the loss of one znode ends the hold, and that the other
// znodes are deleted.
func TestLossOfOneZnodeEndsAll(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		h := acquire(t, zklock.All(c.Mutex("a"), c.Mutex("b"), c.Semaphore("s", 2)))
		remove(t, op, h.Nodes()[2])
		<-h.Done()
		wants(t, "after the loss", h.Err(), zklock.ErrLost)
		time.Sleep(time.Second)
		free(t, zklock.All(c.Mutex("a"), c.Mutex("b")))
	})
}

// TestWaiterNoticesDeletionOfEarlierEntry checks that an acquire that waits for its second lock is
// not granted after another client deleted its entry of the first one: a third client may hold that.
func TestWaiterNoticesDeletionOfEarlierEntry(t *testing.T) {
	for kind, second := range map[string]func(*zklock.Client) *zklock.Lock{
		"mutex":     func(c *zklock.Client) *zklock.Lock { return c.Mutex("b") },
		"semaphore": func(c *zklock.Client) *zklock.Lock { return c.Semaphore("b", 1) },
	} {
		t.Run(kind, func(t *testing.T) {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				c, other, op := dial(t, srv), dial(t, srv), srv.Dial(t)
				holder := acquire(t, second(other))
				waiter := waiting(t, t.Context(), second(dial(t, srv))) // so that c waits at the semaphore's gate, too
				both := zklock.All(c.Mutex("a"), second(c)).InOrder()
				all := waiting(t, t.Context(), both)
				entries, _, err := op.Children(t.Context(), "/zklock/a")
				if err != nil || len(entries) != 1 {
					t.Fatal(entries, err)
				}
				next := waiting(t, t.Context(), other.Mutex("a"))
				remove(t, op, "/zklock/a/"+entries[0])
				first := <-next
				release(t, holder)
				release(t, <-waiter)
				time.Sleep(300 * time.Millisecond)
				pending(t, "while another client holds the first lock", all)
				release(t, first)
				release(t, <-all)
			})
		})
	}
}

// TestAllRepliesLost checks that the outcome of an All is exact, whichever reply is
// lost.
func TestAllRepliesLost(t *testing.T) {
	for _, op := range []string{"create2", "multi", "getChildren2", "getData", "delete"} {
		for skip := range 3 {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				c, other := dial(t, srv), dial(t, srv)
				for _, all := range []*zklock.Lock{
					zklock.All(c.Mutex("a"), c.Mutex("b"), c.Semaphore("s", 2)),
					zklock.All(c.Mutex("b"), c.Mutex("a")).InOrder(),
				} {
					f := srv.DropReply(zktest.Match{Op: op, Skip: skip})
					h := acquire(t, all)
					locked(t, other.Mutex("a"))
					locked(t, other.Mutex("b"))
					release(t, h)
					f.Stop()
				}
				time.Sleep(time.Second)
				free(t, zklock.All(other.Mutex("a"), other.Mutex("b"), other.Semaphore("s", 2).Permits(2)))
			})
		}
	}
}

// TestAllInMissingParents checks that an All creates nothing if it may not create one
// of the parents.
func TestAllInMissingParents(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		create(t, op, "/forbidden", zk.ReadACL())
		_, err := zklock.All(c.Mutex("a"), c.Mutex("/forbidden/b")).Acquire(t.Context())
		if !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("%v", err)
		}
		free(t, c.Mutex("a"))
	})
}

// TestAllOfSemaphoresHasNoCommonToken: the order of such a token would not apply to the other
// resources.
func TestAllOfSemaphoresHasNoCommonToken(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		events := make(chan zklock.Event, 10)
		c := dialWith(t, srv, zklock.Options{OnAcquire: func(e zklock.Event) { events <- e }})
		a, b := c.Semaphore("a", 1), c.Semaphore("b", 1)
		for _, both := range []*zklock.Lock{zklock.All(a, b), zklock.All(a, b).InOrder()} {
			h := acquire(t, both)
			if e := <-events; h.Token() != 0 || e.Token != 0 {
				t.Errorf("%s: token %d, the hook was told %d", both, h.Token(), e.Token)
			}
			if h.TokenOf("a") <= 0 || h.TokenOf("b") <= h.TokenOf("a") {
				t.Errorf("%s: tokens %d, %d", both, h.TokenOf("a"), h.TokenOf("b"))
			}
			release(t, h)
		}
		for _, one := range []*zklock.Lock{a, zklock.All(a), zklock.All(a, c.Mutex("m"))} {
			h := acquire(t, one)
			if h.Token() <= 0 {
				t.Errorf("%s: token %d", one, h.Token())
			}
			release(t, h)
		}
	})
}

func resize(t *testing.T, c *zklock.Client, name string, n int) {
	t.Helper()
	if err := c.Resize(t.Context(), name, n); err != nil {
		t.Fatal(err)
	}
}

// dialZK returns a ZooKeeper client for operations of other programs.
func dialZK(t *testing.T, srv *zktest.Server, auth ...zk.Auth) *zk.Client {
	t.Helper()
	return srv.Dial(t, func(o *zk.Options) { o.Auth = auth })
}

// TestResize checks that a larger size grants waiters that fit, and that a smaller size revokes
// no hold and grants no waiter until enough permits are released.
func TestResize(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		a, b := c.ResizableSemaphore("sem"), other.ResizableSemaphore("sem")
		resize(t, c, "sem", 2)
		holds := []*zklock.Hold{acquire(t, a), acquire(t, b)}
		locked(t, b)
		waiters := []<-chan *zklock.Hold{waiting(t, t.Context(), b), waiting(t, t.Context(), a), waiting(t, t.Context(), b.Permits(2))}
		pending(t, "both permits are taken", waiters...)

		began := time.Now()
		resize(t, other, "sem", 4)
		holds = append(holds, got(t, "the third", waiters[0]), got(t, "the fourth", waiters[1]))
		if d := time.Since(began); d > time.Second {
			t.Errorf("granted %v after the change", d)
		}
		pending(t, "four of four permits are held", waiters[2])

		resize(t, c, "sem", 2)
		for _, h := range holds {
			if err := h.Verify(t.Context()); err != nil {
				t.Errorf("a smaller size: %v", err)
			}
		}
		for _, h := range holds[:3] {
			release(t, h)
			pending(t, "more permits are held than the new size has room for", waiters[2])
		}
		release(t, holds[3])
		release(t, got(t, "two permits", waiters[2]))
		free(t, a.Permits(2))
	})
}

// TestWaitForStoredSizeLeavesNoWatch checks that no watch is left after waits for resizable
// semaphores, however they end.
func TestWaitForStoredSizeLeavesNoWatch(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		for i := range 12 {
			name := fmt.Sprint("sem-", i)
			resize(t, c, name, 1)
			h := acquire(t, c.ResizableSemaphore(name))
			ctx, cancel := context.WithCancel(t.Context())
			waiter := waiting(t, ctx, other.ResizableSemaphore(name))
			switch i % 4 {
			case 0:
				release(t, h)
				release(t, got(t, "after a release", waiter))
			case 1:
				resize(t, c, name, 2)
				release(t, got(t, "after a larger size", waiter))
				release(t, h)
			case 2:
				cancel()
				<-waiter
				release(t, h)
			case 3:
				srv.Refuse(true)
				srv.CutConnections()
				cancel()
				<-waiter
				srv.Refuse(false)
				release(t, h)
			}
			cancel()
			time.Sleep(timeout / 2) // until the client is connected again
			if n := srv.Server().Stats().Watches; n != 0 {
				t.Errorf("%d watches after the wait for %s", n, name)
			}
		}
	})
}

// TestSizeWatchesThatStayAreBounded checks that a client that cannot remove its watches on stored
// sizes leaves a bounded number, and then still learns of a larger size. In a shared session, it
// removes no watch that another user of the session may need.
func TestSizeWatchesThatStayAreBounded(t *testing.T) {
	for what, old := range map[string]bool{"shared session": false, "old servers": true} {
		t.Run(what, func(t *testing.T) {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				holder, session := dial(t, srv), srv.Dial(t)
				waiter := zklock.New(session, nil)
				defer waiter.Close()
				if old {
					srv.Imitate(zktest.Release34)
					waiter = dial(t, srv)
				}
				const most = 64
				for i := range most + 6 {
					resize(t, holder, fmt.Sprint("sem-", i), 1)
				}
				_, _, changed, err := session.GetW(t.Context(), "/zklock/sem-0/size")
				if err != nil {
					t.Fatal(err)
				}
				before := srv.Server().Stats().Watches
				for i := range most + 6 {
					name := fmt.Sprint("sem-", i)
					h := acquire(t, holder.ResizableSemaphore(name))
					ctx, cancel := context.WithCancel(t.Context())
					w := waiting(t, ctx, waiter.ResizableSemaphore(name))
					cancel()
					<-w
					release(t, h)
				}
				synctest.Wait()
				if n := srv.Server().Stats().Watches - before; n > most {
					t.Errorf("%d more watches", n)
				}
				h := acquire(t, holder.ResizableSemaphore("sem-69"))
				w := waiting(t, t.Context(), waiter.ResizableSemaphore("sem-69"))
				resize(t, holder, "sem-69", 2)
				time.Sleep(2 * time.Second)
				release(t, got(t, "two seconds after a larger size", w))
				release(t, h)

				select {
				case e := <-changed:
					t.Errorf("the watch of another user reported %v", e)
				default:
				}
				resize(t, holder, "sem-0", 3)
				if e := <-changed; e.Type != zk.EventNodeDataChanged {
					t.Errorf("the watch of another user reported %v", e)
				}
			})
		})
	}
}

// recorder records what a client writes to its connection.
type recorder struct {
	net.Conn
	mu     sync.Mutex
	frames [][]byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.frames = append(r.frames, slices.Clone(b))
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// TestLateResizeChangesNothing checks that servers refuse a repeated request of Resize after
// another client has set the size.
func TestLateResizeChangesNothing(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		var conn *recorder
		c := dialWith(t, srv, zklock.Options{
			SessionTimeout: timeout,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				under, err := srv.DialContext(ctx, network, addr)
				conn = &recorder{Conn: under}
				return conn, err
			},
		})
		other := dial(t, srv)
		resize(t, c, "sem", 2)
		resize(t, other, "sem", 3)
		conn.mu.Lock()
		conn.frames = nil
		conn.mu.Unlock()
		resize(t, c, "sem", 8)
		resize(t, other, "sem", 4)
		conn.mu.Lock()
		late := slices.Concat(conn.frames...)
		conn.mu.Unlock()
		if !bytes.Contains(late, []byte("/size\x00\x00\x00\x04\x00\x00\x00\x08")) {
			t.Fatalf("no request sets the size to 8: %q", late)
		}
		if _, err := conn.Conn.Write(late); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s := other.ResizableSemaphore("sem")
		for range 4 {
			defer release(t, acquire(t, s))
		}
		locked(t, s)
	})
}

// TestResizeEndsWaitForMorePermits checks that an acquire fails if the size is smaller than its
// number of permits, at once or later, and names both numbers.
func TestResizeEndsWaitForMorePermits(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.ResizableSemaphore("sem")
		_, err := l.Acquire(t.Context())
		wants(t, "no size", err, zklock.ErrSize)
		_, err = l.TryAcquire(t.Context())
		wants(t, "a try without a size", err, zklock.ErrSize)
		resize(t, c, "sem", 3)
		_, err = l.Permits(4).TryAcquire(t.Context())
		wants(t, "more permits than there are", err, zklock.ErrSize)
		h := acquire(t, l)
		failed := make(chan error, 1)
		go func() {
			_, err := l.Permits(3).Acquire(t.Context())
			failed <- err
		}()
		synctest.Wait()
		resize(t, c, "sem", 2)
		err = <-failed
		wants(t, "a smaller size", err, zklock.ErrSize)
		if text := fmt.Sprint(err); !strings.Contains(text, "it is 2, and the acquire needs 3 permits") {
			t.Error(text)
		}
		release(t, h)
	})
}

// TestResizeFailsClientsWithOtherNumber checks that a client with its own number fails if that
// differs from the stored size while other clients hold permits by that size.
func TestResizeFailsClientsWithOtherNumber(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, old := dial(t, srv), dial(t, srv)
		h := acquire(t, old.Semaphore("sem", 5)) // its number is stored
		resize(t, c, "sem", 2)
		_, err := old.Semaphore("sem", 5).Acquire(t.Context())
		wants(t, "the old number after a Resize", err, zklock.ErrPermits)
		free(t, old.Semaphore("sem", 2))
		next := acquire(t, c.ResizableSemaphore("sem"))
		locked(t, c.ResizableSemaphore("sem")) // it counts the permit of the old client
		release(t, h)
		_, err = old.Semaphore("sem", 5).Acquire(t.Context())
		wants(t, "the old number", err, zklock.ErrPermits)
		release(t, next)

		// The stored size applies even after a client with another number was the only one.
		h = acquire(t, old.Semaphore("sem", 5))
		next = acquire(t, c.ResizableSemaphore("sem"))
		_, err = old.Semaphore("sem", 5).Acquire(t.Context())
		wants(t, "the old number again", err, zklock.ErrPermits)
		locked(t, c.ResizableSemaphore("sem"))
		release(t, h)
		release(t, next)
	})
}

// TestResizeErrors checks invalid sizes, an invalid name, and data of other programs.
func TestResizeErrors(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		kazoo := dialWith(t, srv, zklock.Options{Layout: zklock.KazooLayout()})
		wants(t, "no permits", c.Resize(t.Context(), "sem", 0), zklock.ErrInvalidLock)
		wants(t, "too many", c.Resize(t.Context(), "sem", 1<<20+1), zklock.ErrInvalidLock)
		wants(t, "kazoo's layout", kazoo.Resize(t.Context(), "sem", 2), zklock.ErrInvalidLock)
		wants(t, "an invalid name", c.Resize(t.Context(), "", 2), zklock.ErrInvalidName)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		wants(t, "a done context", c.Resize(done, "sem", 2), context.Canceled)
		l := c.ResizableSemaphore("sem")
		wants(t, "too many at once", second(l.Permits(1025).Acquire(t.Context())), zklock.ErrInvalidLock)
		wants(t, "kazoo's layout", second(kazoo.ResizableSemaphore("sem").Acquire(t.Context())), zklock.ErrInvalidLock)

		resize(t, c, "sem", 2)
		z := dialZK(t, srv)
		for _, data := range []string{"", "3", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x80\x00\x00\x00", "\x00\x00\x00\x00\x03"} {
			set(t, z, l.Path()+"/size", data)
			wants(t, fmt.Sprintf("the data %q", data), second(l.Acquire(t.Context())), zklock.ErrSize)
			wants(t, fmt.Sprintf("a try with the data %q", data), second(l.TryAcquire(t.Context())), zklock.ErrSize)
		}
		resize(t, c, "sem", 1)
		free(t, l)
	})
}

func second(_ *zklock.Hold, err error) error { return err }

// TestDeletedSizeEndsWait checks that a waiter fails if the size is deleted, and that a new size
// applies.
func TestDeletedSizeEndsWait(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.ResizableSemaphore("sem")
		resize(t, c, "sem", 1)
		h := acquire(t, l)
		failed := make(chan error, 1)
		go func() {
			_, err := l.Acquire(t.Context())
			failed <- err
		}()
		synctest.Wait()
		remove(t, dialZK(t, srv), l.Path()+"/size")
		wants(t, "without a size", <-failed, zklock.ErrSize)
		release(t, h)
		resize(t, c, "sem", 1)
		free(t, l)
	})
}

// TestInspectResizedSemaphore checks that all permits are shown as held after the size became
// smaller, except those of a waiting acquire.
func TestInspectResizedSemaphore(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		l := c.ResizableSemaphore("sem")
		resize(t, c, "sem", 3)
		holds := []*zklock.Hold{acquire(t, l), acquire(t, l), acquire(t, l)}
		resize(t, c, "sem", 1)
		ctx, cancel := context.WithCancel(t.Context())
		w := waiting(t, ctx, other.ResizableSemaphore("sem").Permits(1))
		pending(t, "three of one", w)
		for what, read := range map[string]func() ([]zklock.Entry, error){
			"the lock":    func() ([]zklock.Entry, error) { return l.Inspect(t.Context()) },
			"another":     func() ([]zklock.Entry, error) { return c.Semaphore("sem", 2).Inspect(t.Context()) },
			"by its path": func() ([]zklock.Entry, error) { return c.Inspect(t.Context(), "sem") },
		} {
			entries, err := read()
			held := 0
			for _, e := range entries {
				if e.Holder {
					held++
				}
			}
			if err != nil || len(entries) != 4 || held != 3 {
				t.Errorf("%s: %d of %d entries hold, %v", what, held, len(entries), err)
			}
		}
		cancel()
		<-w
		for _, h := range holds {
			release(t, h)
		}
		synctest.Wait() // for the delete of the canceled acquire's entries
		if entries, err := c.Inspect(t.Context(), "sem"); err != nil || len(entries) > 0 {
			t.Errorf("without holders: %v, %v", entries, err)
		}
	})
}

// TestSizeKeepsAccess checks that the znode of the size, and those that Resize creates above it,
// have the access of the znode above. Only clients that may use the semaphore can resize it.
func TestSizeKeepsAccess(t *testing.T) {
	for name, acl := range map[string][]zk.ACL{"the parent's ACL": nil, "Options.ACL": zk.CreatorACL()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				auth := zk.Auth{Scheme: "digest", Data: []byte("ann:secret")}
				ann := dialWith(t, srv, zklock.Options{Auth: []zk.Auth{auth}, ACL: acl})
				z := dialZK(t, srv, auth)
				create(t, z, "/ann", zk.CreatorACL())
				resize(t, ann, "/ann/team/sem", 2)
				h := acquire(t, ann.ResizableSemaphore("/ann/team/sem").Permits(2))
				eve := dial(t, srv)
				wants(t, "another client's Resize", eve.Resize(t.Context(), "/ann/team/sem", 9), zk.ErrNoAuth)
				wants(t, "another client's Resize of a new semaphore", eve.Resize(t.Context(), "/ann/team/other", 9), zk.ErrNoAuth)
				_, err := eve.ResizableSemaphore("/ann/team/sem").TryAcquire(t.Context())
				wants(t, "another client's try", err, zk.ErrNoAuth)
				release(t, h)

				// Below an open znode, the parent of several semaphores stays open.
				resize(t, ann, "shared/sem", 2)
				resize(t, eve, "shared/other", 2)
			})
		})
	}
}

// TestSizeBelowNewClosedZnodeIsClosed: while Resize creates the znode of a semaphore, another
// client creates it with a closed ACL. The size gets that ACL too.
func TestSizeBelowNewClosedZnodeIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		auth := zk.Auth{Scheme: "digest", Data: []byte("ann:secret")}
		c, z := dialWith(t, srv, zklock.Options{Auth: []zk.Auth{auth}}), dialZK(t, srv, auth)
		delayed := false
		srv.DelayFunc(func(f zktest.Frame) time.Duration {
			if delayed || !strings.HasPrefix(f.Op, "create") || f.Path != "/sem" {
				return 0
			}
			delayed = true
			return time.Second
		})
		done := make(chan error)
		go func() { done <- c.Resize(t.Context(), "/sem", 2) }() // ends with Resize
		synctest.Wait()
		create(t, z, "/sem", zk.CreatorACL())
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wants(t, "another client's Resize", dial(t, srv).Resize(t.Context(), "/sem", 9), zk.ErrNoAuth)
	})
}
