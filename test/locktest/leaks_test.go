package locktest

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

var leakTries = flag.Int("leaks", defaultLeakTries, "how many acquires TestCancelsLeaveNothing cancels")

const (
	// leakDelay is the delay of each direction of the network.
	leakDelay = time.Millisecond
	// leakBatch is the number of acquires between two checks.
	leakBatch = 500
)

// cancels runs goroutines that acquire locks of every kind and cancel at any moment.
type cancels struct {
	*env
	locks     []*zklock.Lock
	rng       *rand.Rand // only the goroutine that calls batch uses it
	granted   atomic.Int64
	cancelled atomic.Int64
}

// TestCancelsLeaveNothing cancels ten thousand acquires at any moment: before a request is
// sent, while requests are in flight, and while they wait. No acquire may leave a goroutine, or
// a znode for longer than the round trips of its delete. The flag -leaks sets the number of
// acquires.
func TestCancelsLeaveNothing(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		c := newCancels(e, srv)
		before := countGoroutines()
		for n := 0; n < *leakTries && !e.Failed(); n += leakBatch {
			c.batch(leakBatch)
			time.Sleep(2*leakDelay + // replies to requests in flight
				2*leakDelay + // deletes
				leakDelay) // a delete may wait for a listing in flight
			synctest.Wait()
			e.noEntries()
		}
		c.check(before, *leakTries)
	})
}

// TestCancelsWithLostRepliesLeaveNothing also loses replies together with their connections.
// No znode may be left after the next connection.
func TestCancelsWithLostRepliesLeaveNothing(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		c := newCancels(e, srv)
		before := countGoroutines()
		lost := 0
		for n := 0; n < *leakTries/4 && !e.Failed(); n += 50 {
			faults := []*zktest.Fault{
				srv.DropReply(zktest.Match{Op: "create2", Skip: c.rng.IntN(20)}), srv.DropReply(zktest.Match{Op: "multi", Skip: c.rng.IntN(20)}),
				srv.DropReply(zktest.Match{Op: "delete", Skip: c.rng.IntN(20)}), srv.DropRequest(zktest.Match{Skip: c.rng.IntN(100)}),
			}
			c.batch(50)
			for _, f := range faults {
				lost += f.Count()
				f.Stop()
			}
			time.Sleep(bubbleTimeout / 4) // until the clients have reconnected
			synctest.Wait()
			e.noEntries()
		}
		c.check(before, *leakTries/4)
		if lost < *leakTries/100 {
			e.Errorf("only %d replies and requests were lost", lost)
		}
	})
}

// countGoroutines counts the goroutines. ReadMemStats stops the world, after which goroutines
// that were about to end have ended.
func countGoroutines() int {
	synctest.Wait()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine()
}

// newCancels connects three clients through a slow network.
func newCancels(e *env, srv *zktest.Server) *cancels {
	srv.Delay(leakDelay)
	c := &cancels{env: e, rng: rand.New(rand.NewPCG(1, uint64(*leakTries)))}
	for range 3 {
		k := e.dial()
		c.locks = append(c.locks,
			k.Mutex("m"), k.RWMutex("rw").Reader(), k.RWMutex("rw").Writer(), k.Semaphore("s", 3).Permits(2), k.NodeLock("n"),
			zklock.All(k.Mutex("m"), k.Semaphore("s", 3)), zklock.All(k.Mutex("m"), k.RWMutex("rw").Writer()).InOrder())
	}
	// First, let each client start its goroutines and connections.
	for _, l := range c.locks {
		e.release(e.acquire(l))
	}
	e.noEntries()
	synctest.Wait()
	return c
}

// batch runs n acquires, a dozen at a time.
func (c *cancels) batch(n int) {
	const atATime = 12
	var all sync.WaitGroup
	slots := make(chan struct{}, atATime)
	for range n {
		l := c.locks[c.rng.IntN(len(c.locks))]
		// An acquire of a free lock takes two delays, or more for a semaphore.
		patience, hold := time.Duration(c.rng.Int64N(int64(8*leakDelay))), time.Duration(c.rng.Int64N(int64(4*leakDelay)))
		if c.rng.IntN(5) == 0 {
			patience *= 8
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			c.one(l, patience, hold)
		})
	}
	all.Wait()
}

// one acquires with a context that ends soon, and releases what it acquired.
func (c *cancels) one(l *zklock.Lock, patience, hold time.Duration) {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	h, err := l.Acquire(ctx)
	switch {
	case err == nil:
		c.granted.Add(1)
		time.Sleep(hold)
		if err := h.Release(c.ctx); err != nil {
			c.Errorf("release of %s: %v", l, err)
		}
	case errors.Is(err, context.DeadlineExceeded):
		c.cancelled.Add(1)
	default:
		c.Errorf("acquire of %s: %v", l, err)
	}
}

// check fails if too few of n acquires were cancelled or granted, or if more goroutines run
// than before.
func (c *cancels) check(before, n int) {
	c.Helper()
	c.Logf("%d granted, %d cancelled", c.granted.Load(), c.cancelled.Load())
	if c.cancelled.Load() < int64(n/2) || c.granted.Load() < int64(n/50) {
		c.Errorf("of %d acquires, %d were cancelled and %d granted", n, c.cancelled.Load(), c.granted.Load())
	}
	if after := countGoroutines(); after > before {
		var b strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
		c.Errorf("%d goroutines before, %d after:\n%s", before, after, &b)
	}
}
