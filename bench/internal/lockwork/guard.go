package lockwork

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// writer is the weight of an exclusive holder of a read-write lock.
const writer = 1 << 20

// guard observes one lock: which weight holds it, and how long handovers take. It is safe
// for concurrent use.
type guard struct {
	inside     atomic.Int64
	released   atomic.Int64 // time of the last call of a release, after begin
	violations atomic.Int64
	limit      int64 // largest weight that may hold the lock at once
	begin      time.Time

	mu        sync.Mutex
	handOvers []time.Duration
}

// enter records that an acquire that began at a given time has returned. The weight is 1,
// or writer for an exclusive holder of a read-write lock.
func (g *guard) enter(began time.Time, weight int64) {
	now := time.Since(g.begin)
	in := g.inside.Add(weight)
	if weight == writer && in != writer || in > g.limit {
		g.violations.Add(1)
	}
	released := time.Duration(g.released.Load())
	if released == 0 || began.Sub(g.begin) > released || now < released {
		return // it did not wait for this release
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handOvers = append(g.handOvers, now-released)
}

// leave is called directly before a release.
func (g *guard) leave(weight int64) {
	g.inside.Add(-weight)
	g.released.Store(int64(time.Since(g.begin)))
}

// sum adds up what the guards observed.
func sum(guards []*guard, r *Result) {
	var all []time.Duration
	for _, g := range guards {
		g.mu.Lock()
		all = append(all, g.handOvers...)
		g.mu.Unlock()
		r.Violations += g.violations.Load()
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	r.HandOver50, r.HandOver99 = all[len(all)/2], all[len(all)*99/100]
}
