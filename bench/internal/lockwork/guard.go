package lockwork

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// writer is what an exclusive holder counts for among readers.
const writer = 1 << 20

// guard watches one lock: who is inside, and how long hand-overs take. It is
// for all goroutines.
type guard struct {
	inside     atomic.Int64
	released   atomic.Int64 // when the last release was called, after begin
	violations atomic.Int64
	limit      int64 // how much may be inside at once
	begin      time.Time

	mu        sync.Mutex
	handOvers []time.Duration
}

// enter notes that an acquire which began at a time has returned; weight is 1,
// or writer for an exclusive holder among readers.
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

// leave is called just before a release.
func (g *guard) leave(weight int64) {
	g.inside.Add(-weight)
	g.released.Store(int64(time.Since(g.begin)))
}

// sum adds up what guards have seen.
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
