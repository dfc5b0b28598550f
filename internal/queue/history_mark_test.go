package queue

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestRandomHistoriesWithMarks runs histories of one lock with many clients and one or two
// acquires of each, so that most wait for entries of several other clients. Blockers are granted,
// released, downgraded, canceled, deleted, overwritten, and expired, while requests are in flight
// or are lost. No acquire is granted before an entry that exists ahead of it, and no client sends
// more than a few reads at once.
func TestRandomHistoriesWithMarks(t *testing.T) {
	seeds := uint64(*markHistoryCount)
	if randomRuns < 100 {
		seeds = 30
	}
	first := uint64(0)
	if *oneMarkHistory != 0 {
		first, seeds = *oneMarkHistory, *oneMarkHistory+1
	}
	granted, marked, cleared := 0, 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newMarkHistory(seed)
		if err := w.run(); err != nil {
			if *oneMarkHistory != 0 {
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
		t.Errorf("%d granted, %d releases marked, %d waiters cleared by a mark in %d histories: too few", granted, marked, cleared, seeds)
	}
}

var markHistoryCount = flag.Uint64("mark-histories", 150, "the number of histories with marks")
var oneMarkHistory = flag.Uint64("mark-history", 0, "run only the history with marks of this seed, and print its trace")

func newMarkHistory(seed uint64) *history {
	w := newHistory(seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	w.layout = []Names{{}, {}, {Layout: Mixed}, {Layout: Latch},
		{Layout: Custom, Prefix: "host", Exclusive: "-W-", Shared: "-R-"}}[rng.IntN(5)]
	w.operators, w.most, w.delay = rng.IntN(3) > 0, 1+rng.IntN(2), 0
	if seed%5 == 0 {
		w.most = 2 * smallQueue // few clients with many acquires each
	}
	for len(w.links) < 7 && seed%5 != 0 {
		w.addClient(w.rng)
	}
	readers := rng.IntN(3) == 0 && w.layout.Layout != Latch
	w.oneLock = func() Spec {
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
func (w *history) countMarks(l *link, asked []Request) {
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
	// A new connection causes the most reads: for each acquire, its own entry and its predecessor.
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
		w.failf("c%d sends %d reads at once", l.name, reads)
	}
}

// tellAfter returns the time after which an acquire reads its predecessor, which is 0 for a third.
func tellAfter(third int) time.Duration { return min(time.Duration(third), 1) * 100 * time.Millisecond }
