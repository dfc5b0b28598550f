package queue

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestMarkStorm runs storms of one lock with many clients that make one or two acquires
// each, so that most wait behind entries of several other clients. Blockers are granted,
// release, downgrade, give up, are deleted, are overwritten, and expire, while requests are
// in flight or are lost. No acquire passes an entry that exists, and no client sends more
// than a few reads at once, whatever the servers report.
func TestMarkStorm(t *testing.T) {
	seeds := uint64(*manyMarks)
	if histories < 100 {
		seeds = 30
	}
	first := uint64(0)
	if *oneMark != 0 {
		first, seeds = *oneMark, *oneMark+1
	}
	granted, marked, cleared := 0, 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newMarkStorm(seed)
		if err := w.run(); err != nil {
			if *oneMark != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
		marked += w.marked
		cleared += w.cleared
	}
	t.Logf("%d granted, %d releases marked, %d waiters cleared by a mark", granted, marked, cleared)
	if n := int(seeds - first); granted < n*15 || marked < n*4 || cleared < n {
		t.Errorf("%d granted, %d releases marked, %d waiters cleared by a mark in %d storms: too little", granted, marked, cleared, seeds)
	}
}

var manyMarks = flag.Uint64("markstorms", 150, "how many such storms there are")
var oneMark = flag.Uint64("markstorm", 0, "run only the storm with this seed, and print its trace")

func newMarkStorm(seed uint64) *storm {
	w := newStorm(seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	w.layout = []Names{{}, {}, {Layout: Mixed}, {Layout: Latch},
		{Layout: Custom, Prefix: "host", Exclusive: "-W-", Shared: "-R-"}}[rng.IntN(5)]
	w.operators, w.most, w.delay = rng.IntN(3) > 0, 1+rng.IntN(2), 0
	if seed%5 == 0 {
		w.most = 2 * smallQueue // few clients with many acquires each
	}
	for len(w.links) < 7 && seed%5 != 0 {
		w.connects(w.rng)
	}
	readers := rng.IntN(3) == 0 && w.layout.Layout != Latch
	w.chain = func() Spec {
		m := Member{Path: "/q/a", Names: w.layout}
		if readers && w.rng.IntN(4) > 0 {
			m.Kind = Shared
		}
		return Spec{Try: w.rng.IntN(20) == 0, TellAfter: tellAfter(w.rng.IntN(3)), Data: []byte(`{"me":1}`), Members: []Member{m}}
	}
	w.seen = map[*position]bool{}
	return w
}

// countMarks counts the marked releases of a client and its waiters that a mark cleared. It
// fails if what the client has just received made it send more than a few requests.
func (w *storm) countMarks(l *link, asked []Request) {
	if w.seen == nil {
		return
	}
	for _, acq := range l.core.acquires {
		for _, p := range acq.positions {
			switch {
			case p.blocker.mark == markSeen:
				w.seen[p] = true
			case w.seen[p]:
				if p.clearance != notCleared {
					w.cleared++
				}
				delete(w.seen, p)
			}
		}
	}
	// The most is what a new connection makes it ask for: of each acquire its own
	// entry and the nearest.
	reads := 0
	for _, r := range asked {
		if r.Kind == MarkedDelete {
			w.marked++
		}
		if r.Watch || r.Kind == List || r.Kind == SetWatches {
			reads++
		}
	}
	if most := 6*len(l.core.acquires) + 4; reads > most {
		w.failf("c%d looks at %d things at once", l.name, reads)
	}
}

// tellAfter returns a wait after which an acquire reads whose entry it waits for. A third
// of them read at once.
func tellAfter(third int) time.Duration { return min(time.Duration(third), 1) * 100 * time.Millisecond }
