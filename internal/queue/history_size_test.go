package queue

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var sizeHistoryCount = flag.Uint64("size-histories", 150, "the number of histories with resizes")
var oneSizeHistory = flag.Uint64("size-history", 0, "run only the history with resizes of this seed, and print its trace")

// TestRandomHistoriesWithResizes runs histories of one semaphore whose stored size changes at any
// time, while acquires wait, are granted, are canceled, and lose connections. An acquire is
// granted only if, at some moment after its leases were created, at most as many leases existed
// as the size permitted.
func TestRandomHistoriesWithResizes(t *testing.T) {
	seeds := *sizeHistoryCount
	if randomRuns < 100 {
		seeds = 30
	}
	first := uint64(0)
	if *oneSizeHistory != 0 {
		first, seeds = *oneSizeHistory, *oneSizeHistory+1
	}
	granted, resized := 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newSizeHistory(seed)
		if err := w.run(); err != nil {
			if *oneSizeHistory != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
		resized += w.resized
	}
	t.Logf("%d granted, resized %d times", granted, resized)
	if n := int(seeds - first); granted < n*10 || resized < n*5 {
		t.Errorf("%d granted, resized %d times in %d histories: too few", granted, resized, seeds)
	}
}

func newSizeHistory(seed uint64) *history {
	w := newHistory(seed)
	rng := rand.New(rand.NewPCG(seed, 5))
	w.operators, w.most = false, 1+rng.IntN(3)
	w.room = map[int64]bool{}
	w.nodes["/q/s"] = &znode{}
	w.nodes[SizePath("/q/s")] = &znode{data: AppendSize(nil, 2)}
	w.spec = func() Spec {
		return Spec{Try: w.rng.IntN(6) == 0, Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond, Semaphores: []Semaphore{{Path: "/q/s", Permits: 1 + w.rng.IntN(5)/4}}}
	}
	return w
}

// size returns the stored size.
func (w *history) size() int {
	n, _ := ParseSize(w.nodes[SizePath("/q/s")].data)
	return n
}

// resize changes the stored size.
func (w *history) resize() {
	w.zxid++
	w.resized++
	n := 1 + w.rng.IntN(4)
	w.logf("resize to %d", n)
	w.set(SizePath("/q/s"), AppendSize(nil, n))
	w.noteRoom()
}

// noteRoom records the transactions of the existing leases, unless there are more than the size.
func (w *history) noteRoom() {
	leases := w.childrenOf("/q/s/leases")
	if len(leases) > w.size() {
		return
	}
	for _, name := range leases {
		w.room[w.nodes["/q/s/leases/"+name].czxid] = true
	}
}

// checkSizeWatches fails if an informed client that waits for permits has no watch on the stored size
// and reads it too late, or has a watch that none of its acquires needs, or counts its watches
// wrongly.
func (w *history) checkSizeWatches() {
	path := SizePath("/q/s")
	for _, l := range w.links {
		c := l.core
		users, unused, waits := map[string]int{}, 0, false
		for _, acq := range c.acquires {
			for _, p := range acq.positions {
				if p.watchesSize {
					users[SizePath(p.sem.Path)]++
				}
				waits = waits || p.role == leases && p.clearance == notCleared && p.query == idle && acq.phase == working && acq.retryAt > w.now+sizePause
			}
		}
		for path, watch := range c.sizeWatches {
			if watch.users != users[path] {
				w.failf("c%d counts %d users of the watch on %s, not %d", l.name, watch.users, path, users[path])
			}
			if watch.users == 0 {
				unused++
			}
		}
		if unused != c.unusedSizeWatches {
			w.failf("c%d counts %d unused watches, not %d", l.name, c.unusedSizeWatches, unused)
		}
		if !l.informed() || l.session == 0 {
			continue
		}
		if waits && !l.data[path] {
			w.failf("c%d waits without a watch on %s", l.name, path)
		}
		if users[path] == 0 && l.data[path] && c.sizeWatches[path] == nil {
			w.failf("c%d has forgotten its watch on %s", l.name, path)
		}
	}
}
