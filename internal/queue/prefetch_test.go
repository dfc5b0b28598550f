package queue

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestPrefetchStorm runs storms of one lock with many clients that make one or two acquires
// each, so that most wait behind entries of several other clients. Blockers are granted,
// give up, are deleted, are overwritten, and expire, while listings are in flight or are
// lost. No acquire passes an entry that exists, and no client sends more than a few reads
// at once, whatever the servers report.
func TestPrefetchStorm(t *testing.T) {
	seeds := uint64(*manySights)
	if histories < 100 {
		seeds = 30
	}
	first := uint64(0)
	if *sights != 0 {
		first, seeds = *sights, *sights+1
	}
	granted, ranged, after := 0, 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newSights(seed)
		if err := w.run(); err != nil {
			if *sights != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
		ranged += w.ranged
		after += w.after
	}
	t.Logf("%d granted, %d listings ahead of time, %d grants without another", granted, ranged, after)
	if n := int(seeds - first); granted < n*15 || ranged < n*5 || after < n {
		t.Errorf("%d claims granted, %d listings ahead of time and %d grants without another, in %d storms: no storms",
			granted, ranged, after, seeds)
	}
}

var manySights = flag.Uint64("sights", 150, "how many such storms there are")
var sights = flag.Uint64("sight", 0, "run only the storm with this seed, and print its trace")

func newSights(seed uint64) *storm {
	w := newStorm(seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	w.layout = []Names{{}, {}, {Layout: Mixed}, {Layout: Latch},
		{Layout: Custom, Prefix: "host", Exclusive: "-W-", Shared: "-R-"}}[rng.IntN(5)]
	w.operators, w.most, w.delay = rng.IntN(3) > 0, 1+rng.IntN(2), 0
	for len(w.links) < 7 {
		w.connects(w.rng)
	}
	for _, l := range w.links {
		// Of all kinds of pace: what is learned from this server fits seldom.
		l.core.paces = map[string]time.Duration{"/q/a": time.Duration(1+rng.IntN(400)) * time.Millisecond}
	}
	readers := rng.IntN(3) == 0 && w.layout.Layout != Latch
	w.chain = func() Spec {
		m := Member{Path: "/q/a", Names: w.layout}
		if readers && w.rng.IntN(4) > 0 {
			m.Kind = Shared
		}
		return Spec{Try: w.rng.IntN(20) == 0, Data: []byte(`{"me":1}`), Members: []Member{m}}
	}
	w.ranges = map[*position]bool{}
	return w
}

// prefetchesOf counts the prefetches of a client that has just received something, and
// fails if that made the client send more than a few requests.
func (w *storm) prefetchesOf(l *link, asked []Request) {
	if w.ranges == nil {
		return
	}
	for _, acq := range l.core.acquires {
		for _, p := range acq.positions {
			switch {
			case p.clearance != notCleared && w.ranges[p]:
				w.after++
				delete(w.ranges, p)
			case p.prefetching() && !w.ranges[p]:
				w.ranged++
				w.ranges[p] = true
			case p.query != idle:
				delete(w.ranges, p)
			}
		}
	}
	// The most is what a new connection makes it ask for: of each acquire its own
	// entry and the nearest.
	reads := 0
	for _, r := range asked {
		if r.Watch || r.Kind == List {
			reads++
		}
	}
	if most := 6*len(l.core.acquires) + 4; reads > most {
		w.failf("c%d looks at %d things at once", l.name, reads)
	}
}
