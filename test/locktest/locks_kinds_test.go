package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// locked checks that a try finds the lock held.
func (e *env) locked(l *zklock.Lock) {
	e.Helper()
	before := len(e.inspect(l))
	if _, err := l.TryAcquire(e.ctx); !errors.Is(err, zklock.ErrLocked) {
		e.Errorf("trying %s: %v", l, err)
	}
	e.until("the entries of the try are deleted", func() bool { return len(e.inspect(l)) <= before })
}

// testReadWrite checks that readers share the lock, that later readers wait for a waiting
// writer, and that they are granted after a downgrade, which keeps the writer's token.
func testReadWrite(e *env) {
	a, b := e.dial().RWMutex(e.name), e.dial().RWMutex(e.name)
	r1, r2 := e.acquire(a.Reader()), e.acquire(b.Reader())
	writer := e.acquiring(e.ctx, a.Writer())
	late := e.acquiring(e.ctx, b.Reader())
	pending(e, "a writer next to readers", writer)
	e.release(r1)
	pending(e, "a reader before the waiting writer", late)
	e.release(r2)
	w := wait(e, "the writer", writer)
	pending(e, "a reader next to the writer", late)
	next := e.acquiring(e.ctx, b.Writer())
	token := w.Token()
	if err := w.Downgrade(e.ctx); err != nil {
		e.Fatal(err)
	}
	r := wait(e, "the reader after the downgrade", late)
	pending(e, "a writer next to readers", next)
	if entries := e.inspect(a.Reader()); len(entries) != 3 || entries[0].Token != token || entries[0].Node != w.Node() {
		e.Errorf("%+v", entries)
	}
	e.release(r)
	if err := w.Verify(e.ctx); err != nil || w.Token() != token {
		e.Errorf("after the downgrade: %v, token %d, was %d", err, w.Token(), token)
	}
	e.release(w)
	e.release(wait(e, "the next writer", next))
	e.empty(a.Reader())
}

// testSemaphore checks permits in the order of arrival, several at once, and clients that
// disagree about the number of permits.
func testSemaphore(e *env) {
	a, b := e.dial(), e.dial()
	l, other := a.Semaphore(e.name, 3), b.Semaphore(e.name, 3)
	two, one := e.acquire(l.Permits(2)), e.acquire(other)
	e.locked(other)
	w := e.acquiringPermits(e.ctx, other.Permits(3))
	e.release(one)
	pending(e, "three permits", w)
	if _, err := a.Semaphore(e.name, 4).TryAcquire(e.ctx); !errors.Is(err, zklock.ErrPermits) && !errors.Is(err, zklock.ErrLocked) {
		e.Errorf("another number: %v", err)
	}
	e.release(two)
	three := wait(e, "three permits", w)
	if len(three.Nodes()) != 3 || three.Token() <= two.Token() {
		e.Errorf("%v, token %d after %d", three.Nodes(), three.Token(), two.Token())
	}
	e.release(three)
	held := e.acquire(l)
	if _, err := b.Semaphore(e.name, 4).Acquire(e.ctx); !errors.Is(err, zklock.ErrPermits) {
		e.Errorf("another number: %v", err)
	}
	e.release(held)
	e.empty(l)
}

// testResize checks that a semaphore uses the size that the servers store. A larger size grants
// more waiters, and a smaller size ends no hold.
func testResize(e *env) {
	a, b := e.dial(), e.dial()
	l, other := a.ResizableSemaphore(e.name), b.ResizableSemaphore(e.name)
	if _, err := l.TryAcquire(e.ctx); !errors.Is(err, zklock.ErrSize) {
		e.Errorf("without a size: %v", err)
	}
	resize := func(c *zklock.Client, n int) {
		e.Helper()
		if err := c.Resize(e.ctx, e.name, n); err != nil {
			e.Fatal(err)
		}
	}
	resize(b, 1)
	first := e.acquire(l)
	e.locked(other)
	waiters := []<-chan *zklock.Hold{e.acquiringPermits(e.ctx, other), e.acquiringPermits(e.ctx, l), e.acquiringPermits(e.ctx, other.Permits(2))}
	pending(e, "a second permit of one", waiters[0])
	resize(a, 3)
	second, third := wait(e, "the second permit", waiters[0]), wait(e, "the third permit", waiters[1])
	pending(e, "two more of three", waiters[2])
	resize(b, 2)
	for _, h := range []*zklock.Hold{first, second, third} {
		if err := h.Verify(e.ctx); err != nil {
			e.Errorf("after a smaller size: %v", err)
		}
	}
	e.release(first)
	e.release(second)
	pending(e, "two permits next to one of two", waiters[2])
	e.release(third)
	two := wait(e, "two permits", waiters[2])
	if _, err := b.Semaphore(e.name, 3).Acquire(e.ctx); !errors.Is(err, zklock.ErrPermits) {
		e.Errorf("a client with the old number: %v", err)
	}
	e.release(two)
	resize(a, 1)
	if _, err := other.Permits(2).Acquire(e.ctx); !errors.Is(err, zklock.ErrSize) {
		e.Errorf("two permits of one: %v", err)
	}
	e.empty(l)
}

// testAll checks an All in one transaction with one token, and in order without one.
func testAll(e *env) {
	c, other := e.dial(), e.dial()
	x, y := e.name+"/x", e.name+"/y"
	all := zklock.All(c.Mutex(y), c.RWMutex(x).Reader(), c.Semaphore(e.name+"/s", 2))
	for _, l := range []*zklock.Lock{all, all.InOrder()} {
		h := e.acquire(l)
		if (h.Token() == 0) != (l != all) || h.TokenOf(x) == 0 || (h.TokenOf(x) == h.TokenOf(y)) != (l == all) {
			e.Errorf("tokens %d, %d, %d", h.Token(), h.TokenOf(x), h.TokenOf(y))
		}
		e.locked(other.Mutex(x))
		e.locked(other.Mutex(y))
		if err := h.Verify(e.ctx); err != nil {
			e.Error(err)
		}
		w := e.acquiring(e.ctx, other.Mutex(y))
		e.release(h)
		e.release(wait(e, "one of them", w))
	}
	blocker := e.acquire(other.Mutex(x))
	ctx, cancel := context.WithCancel(e.ctx)
	w := e.acquiring(ctx, all)
	pending(e, "an All", w)
	cancel()
	if wait(e, "the cancelled All", w) != nil {
		e.Error("granted after a cancel")
	}
	e.release(blocker)
	e.empty(all)
}

func testNodeLock(e *env) {
	a, b := e.dial().NodeLock(e.name), e.dial().NodeLock(e.name)
	h := e.acquire(a)
	e.locked(b)
	got := e.acquiringPermits(e.ctx, b)
	pending(e, "the second", got)
	e.release(h)
	next := wait(e, "the second", got)
	if next.Token() <= h.Token() {
		e.Errorf("token %d after %d", next.Token(), h.Token())
	}
	e.release(next)
	e.empty(a)
}

// testGuard checks that guarded operations and the check of the hold's znodes are atomic.
func testGuard(e *env) {
	c, op := e.dial(), e.operator()
	data := "/" + e.name
	h := e.acquire(zklock.All(c.Mutex(e.name+"/x"), c.Mutex(e.name+"/y")))
	if err := h.Guard(e.ctx, zk.CreateOp(data, []byte("1"), nil, zk.ModePersistent), zk.SetOp(data, []byte("2"), 0)); err != nil {
		e.Fatal(err)
	}
	err := h.Guard(e.ctx, zk.SetOp(data, []byte("3"), 1), zk.SetOp(data, []byte("4"), 1))
	if !errors.Is(err, zk.ErrBadVersion) || !strings.Contains(fmt.Sprint(err), "operation 1") || h.Err() != nil {
		e.Errorf("an operation that fails: %v, %v", err, h.Err())
	}
	e.remove(op, h.Nodes()[1])
	if err := h.Guard(e.ctx, zk.SetOp(data, []byte("5"), -1)); !errors.Is(err, zklock.ErrLost) {
		e.Errorf("a hold that is lost: %v", err)
	}
	e.catchUp()
	if got, _, err := op.Get(e.ctx, data); err != nil || string(got) != "2" {
		e.Errorf("the znode says %q, %v", got, err)
	}
	if err := op.Delete(e.ctx, data, -1); err != nil {
		e.Error(err)
	}
}

// testOncePer checks that one of several clients runs in a period, that a failed run does not
// count, and that each client sees the last run.
func testOncePer(e *env) {
	var runs atomic.Int64
	once := func(c *zklock.Client, fail error) (ran bool) {
		ran, err := zklock.DoOncePer(e.ctx, c.Mutex(e.name), time.Hour, func(context.Context, *zklock.Hold) error {
			runs.Add(1)
			return fail
		})
		if !errors.Is(err, fail) {
			e.Error(err)
		}
		return ran
	}
	first := e.dial()
	if !once(first, errors.New("failed")) {
		e.Error("the first client did not run")
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { once(e.dial(), nil) })
	}
	all.Wait()
	late := e.dial()
	if once(late, nil) || once(first, nil) || runs.Load() != 2 {
		e.Errorf("%d runs, want one that failed and one more", runs.Load())
	}
	last, err := late.LastRun(e.ctx, e.name)
	if err != nil || last.Token == 0 || last.Owner.PID != os.Getpid() || last.Ended.Before(last.Began) {
		e.Errorf("the last run: %+v, %v", last, err)
	}
	if err := e.operator().Delete(e.ctx, "/zklock/"+e.name+"-done", -1); err != nil {
		e.Error(err)
	}
}

// testRevoke checks that the holder receives the release request, and that the hold continues.
func testRevoke(e *env) {
	c, asker := e.dial(), e.dial()
	for _, pair := range [][2]*zklock.Lock{
		{c.Mutex(e.name), asker.Mutex(e.name)},
		{c.Semaphore(e.name+"/s", 2), asker.Semaphore(e.name+"/s", 2)},
		{c.NodeLock(e.name + "/n"), asker.NodeLock(e.name + "/n")},
	} {
		h := e.acquire(pair[0])
		pending(e, "a revocation", h.Revoked())
		e.catchUp()
		if asked, err := pair[1].Revoke(e.ctx); err != nil || len(asked) != 1 || asked[0].Node != h.Node() {
			e.Errorf("%+v, %v", asked, err)
		}
		wait(e, "the revocation", h.Revoked())
		if err := h.Verify(e.ctx); err != nil && !errors.Is(err, zklock.ErrInvalidLock) {
			e.Error(err)
		}
		e.release(h)
	}
}

// testLayouts checks exclusion between two clients with the same layout, for each layout.
func testLayouts(e *env) {
	for i, layout := range []zklock.Layout{
		zklock.KazooLayout(), zklock.MixedLayout(), zklock.LatchLayout(),
		{Prefix: "me", Exclusive: "-W-", Shared: "-R-"}, {Exclusive: "_lock_", InParent: true},
	} {
		o := e.options()
		o.Layout = layout
		name := fmt.Sprint(e.name, "/", i)
		a, b := e.dialWith(o).RWMutex(name), e.dialWith(o).RWMutex(name)
		h := e.acquire(a.Writer())
		w := e.acquiring(e.ctx, b.Writer())
		pending(e, "a second writer", w)
		e.release(h)
		next := wait(e, "the second writer", w)
		if next.Token() <= h.Token() {
			e.Errorf("%s: token %d after %d", layout, next.Token(), h.Token())
		}
		e.release(next)
		r, err := a.Reader().Acquire(e.ctx)
		if errors.Is(err, zklock.ErrInvalidLock) {
			continue // the layout has no readers
		}
		if err != nil {
			e.Fatal(err)
		}
		e.release(e.acquire(b.Reader()))
		e.locked(b.Writer())
		e.release(r)
		e.empty(a.Writer())
	}
}

// testLockDelay checks that the next client waits for the lock delay after a crash.
func testLockDelay(e *env) {
	delay := e.target.SessionTimeout / 2
	sniffer := &sniffer{inner: e.target.DialContext}
	o := e.options()
	o.LockDelay = delay
	other := e.dialWith(o).Mutex(e.name)
	o.DialContext = sniffer.dial
	l := e.dialWith(o).Mutex(e.name)
	e.release(e.acquire(l))
	late := harness.WatchStalls(e.ctx)
	begun := time.Now()
	e.release(e.acquire(other))
	if took, stalled := time.Since(begun), late(); took >= delay+stalled {
		e.Errorf("without a crash: %v, of which the machine stalled for %v", took, stalled)
	}
	h := e.acquire(l)
	w := e.acquiring(e.ctx, other)
	begun = time.Now()
	if err := sniffer.closeElsewhere(e); err != nil {
		e.Fatal(err)
	}
	next := wait(e, "the grant after the delay", w)
	if took := time.Since(begun); took < delay {
		e.Errorf("granted after %v, not %v", took, delay)
	}
	wait(e, "the loss", h.Done())
	e.release(next)
	e.empty(other)
}

// testKindsContend runs many goroutines on one path and one semaphore, and checks that no
// two holds conflict and that no entry is left.
func testKindsContend(e *env) {
	const clients, workers, rounds, permits = 3, 24, 6, 4
	var mu sync.Mutex // guards the counts
	readers, writers, taken := 0, 0, 0
	count := func(r, w, p int) {
		mu.Lock()
		defer mu.Unlock()
		readers, writers, taken = readers+r, writers+w, taken+p
		if writers > 1 || writers == 1 && readers > 0 || taken > permits {
			e.Errorf("%d readers, %d writers, %d permits at once", readers, writers, taken)
		}
	}
	var all sync.WaitGroup
	var some []*zklock.Client
	for range clients {
		some = append(some, e.dial())
	}
	for w := range workers {
		r := rand.New(rand.NewPCG(uint64(w), 2))
		c := some[w%clients]
		rw, sem := c.RWMutex(e.name), c.Semaphore(e.name+"-permits", permits)
		all.Go(func() { // ends after its rounds
			for range rounds {
				l, reads, writes, takes := rw.Reader(), 1, 0, 0
				switch k := 1 + r.IntN(permits); r.IntN(4) {
				case 0:
					l, reads, writes = rw.Writer(), 0, 1
				case 1:
					l, reads, takes = sem.Permits(k), 0, k
				case 2:
					l, reads, writes, takes = zklock.All(c.Mutex(e.name), sem.Permits(k)), 0, 1, k
				}
				h, err := l.Acquire(e.ctx)
				if err != nil {
					e.Errorf("acquire: %v", err)
					return
				}
				count(reads, writes, takes)
				<-time.After(time.Duration(r.Int64N(int64(2 * time.Millisecond)))) // some work
				count(-reads, -writes, -takes)
				if err := h.Release(e.ctx); err != nil {
					e.Errorf("release: %v", err)
				}
			}
		})
	}
	all.Wait()
	e.empty(some[0].Mutex(e.name))
	e.empty(some[0].Semaphore(e.name+"-permits", permits))
}
