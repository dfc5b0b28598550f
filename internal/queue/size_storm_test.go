package queue

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var sizeStorms = flag.Uint64("sizestorms", 150, "how many such storms there are")
var oneSize = flag.Uint64("sizestorm", 0, "run only the storm with this seed, and print its trace")

// TestSizeStorm runs storms of one semaphore whose stored size changes at any time, while
// acquires wait, are granted, give up, and lose connections. An acquire is granted only if,
// at some moment after its leases were created, no more leases existed than the size at that
// moment.
func TestSizeStorm(t *testing.T) {
	seeds := *sizeStorms
	if histories < 100 {
		seeds = 30
	}
	first := uint64(0)
	if *oneSize != 0 {
		first, seeds = *oneSize, *oneSize+1
	}
	granted, resized := 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newSizeStorm(seed)
		if err := w.run(); err != nil {
			if *oneSize != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
		resized += w.resized
	}
	t.Logf("%d granted, resized %d times", granted, resized)
	if n := int(seeds - first); granted < n*10 || resized < n*5 {
		t.Errorf("%d granted, resized %d times in %d storms: too little", granted, resized, seeds)
	}
}

func newSizeStorm(seed uint64) *storm {
	w := newStorm(seed)
	rng := rand.New(rand.NewPCG(seed, 5))
	w.operators, w.most = false, 1+rng.IntN(3)
	w.room = map[int64]bool{}
	w.nodes["/q/s"] = &znode{}
	w.nodes[SizePath("/q/s")] = &znode{data: AppendSize(nil, 2)}
	w.only = func() Spec {
		return Spec{Try: w.rng.IntN(6) == 0, Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond, Semaphores: []Semaphore{{Path: "/q/s", Permits: 1 + w.rng.IntN(5)/4}}}
	}
	return w
}

// size returns the stored size.
func (w *storm) size() int {
	n, _ := ParseSize(w.nodes[SizePath("/q/s")].data)
	return n
}

// resize changes the stored size.
func (w *storm) resize() {
	w.zxid++
	w.resized++
	n := 1 + w.rng.IntN(4)
	w.logf("resize to %d", n)
	w.set(SizePath("/q/s"), AppendSize(nil, n))
	w.noteRoom()
}

// noteRoom notes the transactions of the leases that exist, if there are no more of them than
// the size.
func (w *storm) noteRoom() {
	leases := w.childrenOf("/q/s/leases")
	if len(leases) > w.size() {
		return
	}
	for _, name := range leases {
		w.room[w.nodes["/q/s/leases/"+name].czxid] = true
	}
}
