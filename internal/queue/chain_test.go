package queue

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestChains is a storm about one lock: clients with many acquires each, most of which
// stand behind another of the same client's and are granted by that one's release, or
// by their number; and operators who delete the whole lock, so that its numbers begin
// anew. Whatever is told to whom and when, nobody passes an entry that is there.
func TestChains(t *testing.T) {
	seeds := uint64(*manyChains)
	if histories < 100 {
		seeds = 30
	}
	first := uint64(0)
	if *chains != 0 {
		first, seeds = *chains, *chains+1
	}
	granted := 0
	for seed := first; seed < seeds; seed++ {
		w := newChain(seed)
		if err := w.run(); err != nil {
			if *chains != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
	}
	if granted < int(seeds-first)*18 {
		t.Errorf("%d claims granted in %d storms: no storms", granted, seeds)
	}
}

var manyChains = flag.Uint64("chains", 300, "how many chains there are")
var chains = flag.Uint64("chain", 0, "run only the chain with this seed, and print its trace")

func newChain(seed uint64) *storm {
	w := newStorm(seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	w.layout = []Names{{}, {}, {}, {Layout: Mixed}}[rng.IntN(4)]
	w.operators, w.most, w.delay = rng.IntN(3) > 0, 2+rng.IntN(6), 0
	w.links = w.links[:2]
	readers := rng.IntN(2) == 0
	w.chain = func() Spec {
		m := Member{Path: "/q/a", Names: w.layout}
		switch n := w.rng.IntN(6); {
		case readers && n < 2:
			m.Kind = Shared
		case readers && n < 5:
			m.Writer = true
		}
		return Spec{Try: w.rng.IntN(10) == 0, Data: []byte(`{"me":1}`), Members: []Member{m}}
	}
	return w
}

// deleteAll deletes the lock with all that is in it. Whoever comes next makes it anew.
func (w *storm) deleteAll() {
	w.logf("operator deletes everything")
	w.touched = true
	for _, name := range w.childrenOf("/q/a") {
		w.zxid++
		w.remove("/q/a/" + name)
	}
	if w.nodes["/q/a"] != nil {
		w.zxid++
		w.remove("/q/a")
	}
	if w.rng.IntN(2) == 0 {
		w.zxid++
		w.create(Creation{Path: "/q/a", Persistent: true}, 0, true)
	}
}

// passes says if an acquire was granted though an entry that it has to wait for is there
// and is not one that its own client has given up.
func (w *storm) passes(c *claimed) {
	if !w.there(c) {
		return // look tells of it
	}
	shared := c.down || c.spec.Members[0].Kind == Shared
	l := w.layout.Sort(w.childrenOf("/q/a"))
	for _, e := range l.Queue {
		p := "/q/a/" + e.Name
		if slices.Contains(c.nodes, p) {
			return
		}
		if shared && e.Kind == Shared || w.nodes[p].owner == c.link.session && !w.claimedBy(c.link, p) {
			continue
		}
		w.failf("c%d.%d was granted, and %s is ahead of %v", c.link.name, c.id, e.Name, c.nodes)
	}
}

// claimedBy reports whether a znode is that of a client's acquire.
func (w *storm) claimedBy(l *link, p string) bool {
	for _, acq := range l.core.acquires {
		if slices.ContainsFunc(acq.nodes(), func(n *node) bool { return n.path() == p }) {
			return true
		}
	}
	return false
}
