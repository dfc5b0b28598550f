package zklock_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

var leakTries = flag.Int("leaks", 1250*storms, "how many acquires TestCancelsLeaveNothing gives up")

const (
	// leakDelay is how long everything takes in each direction.
	leakDelay = time.Millisecond
	// leakBatch is after how many acquires it is looked at what is left.
	leakBatch = 500
)

// quitters are goroutines that ask for locks of every kind and give up at any
// moment.
type quitters struct {
	t         *testing.T
	locks     []*zklock.Lock
	rng       *rand.Rand // shared, so only the batch's goroutine uses it
	granted   atomic.Int64
	cancelled atomic.Int64
}

// TestCancelsLeaveNothing: ten thousand acquires that are given up at any moment,
// before anything is sent, while requests are under way and while they wait, leave
// no znode behind for longer than the round trips that delete it, and no goroutine,
// while all sessions live. With -leaks=1000000 there are that many.
func TestCancelsLeaveNothing(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		q := newQuitters(t, srv)
		before := countGoroutines()
		for n := 0; n < *leakTries && !t.Failed(); n += leakBatch {
			q.batch(leakBatch)
			time.Sleep(2*leakDelay + // the answer to what was under way
				2*leakDelay + // the delete's
				leakDelay) // one may have had to wait for a listing that was under way
			synctest.Wait()
			onlyParentsNow(t, srv)
		}
		q.enough(*leakTries)
		if after := countGoroutines(); after > before {
			t.Errorf("%d goroutines before, %d after:\n%s", before, after, goroutines())
		}
	})
}

// TestCancelsLeaveNothingOfLostAnswers: nor do they when answers are lost with their
// connections, once there is one again.
func TestCancelsLeaveNothingOfLostAnswers(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		q := newQuitters(t, srv)
		before := countGoroutines()
		lost := 0
		for n := 0; n < *leakTries/4 && !t.Failed(); n += 50 {
			faults := []*zktest.Fault{
				srv.DropReply(zktest.Match{Op: "create2", Skip: q.rng.IntN(20)}), srv.DropReply(zktest.Match{Op: "multi", Skip: q.rng.IntN(20)}),
				srv.DropReply(zktest.Match{Op: "delete", Skip: q.rng.IntN(20)}), srv.DropRequest(zktest.Match{Skip: q.rng.IntN(100)}),
			}
			q.batch(50)
			for _, f := range faults {
				lost += f.Count()
				f.Stop()
			}
			time.Sleep(timeout / 4) // at most this passes until there is a connection again
			synctest.Wait()
			onlyParentsNow(t, srv)
		}
		q.enough(*leakTries / 4)
		if lost < *leakTries/100 {
			t.Errorf("only %d answers and requests were lost", lost)
		}
		if after := countGoroutines(); after > before {
			t.Errorf("%d goroutines before, %d after:\n%s", before, after, goroutines())
		}
	})
}

// countGoroutines counts them without those that are just ending: those have ended
// once the world was stopped.
func countGoroutines() int {
	synctest.Wait()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine()
}

// goroutines says where all goroutines are.
func goroutines() string {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	return b.String()
}

// newQuitters dials three clients through a slow network.
func newQuitters(t *testing.T, srv *zktest.Server) *quitters {
	srv.Delay(leakDelay)
	q := &quitters{t: t, rng: rand.New(rand.NewPCG(1, uint64(*leakTries)))}
	for range 3 {
		c := dial(t, srv)
		q.locks = append(q.locks,
			c.Mutex("m"), c.RWMutex("rw").Reader(), c.RWMutex("rw").Writer(), c.Semaphore("s", 3).Permits(2), c.NodeLock("n"),
			zklock.All(c.Mutex("m"), c.Semaphore("s", 3)), zklock.All(c.Mutex("m"), c.RWMutex("rw").Writer()).InOrder())
	}
	// What every client does once is over: goroutines and connections are counted
	// from here on.
	for _, l := range q.locks {
		release(t, acquire(t, l))
	}
	onlyParentsNow(t, srv)
	synctest.Wait()
	return q
}

// batch is n acquires, a dozen at a time.
func (q *quitters) batch(n int) {
	const atATime = 12
	var all sync.WaitGroup
	slots := make(chan struct{}, atATime)
	for range n {
		l := q.locks[q.rng.IntN(len(q.locks))]
		// A free lock takes two delays, a semaphore's more; and some wait for others.
		patience, hold := time.Duration(q.rng.Int64N(int64(8*leakDelay))), time.Duration(q.rng.Int64N(int64(4*leakDelay)))
		if q.rng.IntN(5) == 0 {
			patience *= 8
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			q.one(l, patience, hold)
		})
	}
	all.Wait()
}

// one acquires with a context that ends soon, and releases what it got.
func (q *quitters) one(l *zklock.Lock, patience, hold time.Duration) {
	ctx, cancel := context.WithTimeout(q.t.Context(), patience)
	defer cancel()
	h, err := l.Acquire(ctx)
	switch {
	case err == nil:
		q.granted.Add(1)
		time.Sleep(hold)
		if err := h.Release(q.t.Context()); err != nil {
			q.t.Errorf("release of %s: %v", l, err)
		}
	case errors.Is(err, context.DeadlineExceeded):
		q.cancelled.Add(1)
	default:
		q.t.Errorf("acquire of %s: %v", l, err)
	}
}

// enough fails unless many of n acquires were given up, and some were not.
func (q *quitters) enough(n int) {
	q.t.Logf("%d granted, %d given up", q.granted.Load(), q.cancelled.Load())
	if q.cancelled.Load() < int64(n/2) || q.granted.Load() < int64(n/50) {
		q.t.Errorf("of %d acquires %d were given up and %d granted", n, q.cancelled.Load(), q.granted.Load())
	}
}
