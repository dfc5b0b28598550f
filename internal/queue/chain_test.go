package queue

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
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
		return Spec{Try: w.rng.IntN(10) == 0, Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond, Members: []Member{m}}
	}
	return w
}

// TestSoleUse is a storm about one lock that the clients use in turns, each some times in a
// row and one acquire at a time, so that most are granted by their number alone. Between two
// turns operators may delete the lock, so that the numbers begin anew, and the number of the
// next turn may follow that of the client's last one by chance. Nobody passes an entry that
// exists.
func TestSoleUse(t *testing.T) {
	seeds := uint64(*manyTurns)
	if histories < 100 {
		seeds = 30
	}
	first := uint64(0)
	if *oneTurns != 0 {
		first, seeds = *oneTurns, *oneTurns+1
	}
	granted, unlisted := 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newStorm(seed)
		w.layout, w.operators, w.most, w.delay = Names{}, seed%3 == 0, 1, 0
		w.links, w.turns = w.links[:2], &turns{}
		w.chain = func() Spec {
			return Spec{Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond, Members: []Member{{Path: "/q/a", Writer: w.rng.IntN(8) == 0}}}
		}
		if err := w.run(); err != nil {
			if *oneTurns != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
		unlisted += w.turns.unlisted
	}
	t.Logf("%d granted, %d creates without a listing", granted, unlisted)
	if n := int(seeds - first); granted < n*60 || unlisted < n*30 {
		t.Errorf("%d granted, %d creates without a listing in %d storms: too few", granted, unlisted, n)
	}
}

var manyTurns = flag.Uint64("turns", 600, "how many storms of turns there are")
var oneTurns = flag.Uint64("turn", 0, "run only the storm of turns with this seed, and print its trace")

// turns says which of the clients acquires.
type turns struct {
	current  *link
	left     int  // how many acquires are left of this turn
	overlaps bool // the next turn begins while its last hold lasts
	unlisted int  // creates without a listing
}

// of reports whether it is a client's turn, and counts its acquire.
func (u *turns) of(l *link) bool {
	if u == nil {
		return true
	}
	if l != u.current || u.left == 0 {
		return false
	}
	u.left--
	return true
}

// count counts the creates of entries that no listing follows.
func (u *turns) count(requests []Request) {
	if u == nil {
		return
	}
	creates, lists := 0, 0
	for _, r := range requests {
		switch r.Kind {
		case Create:
			creates++
		case List:
			lists++
		}
	}
	u.unlisted += max(0, creates-lists)
}

// turn lets a client act, and gives the turn to the other one when it is over. Some turns
// are over while the last hold lasts. After the others, the lock may be deleted, and then the
// other client uses up as many numbers as were used before, or one more.
func (w *storm) turn(l *link) {
	w.act(l)
	u := w.turns
	if u.left > 0 || w.calm {
		return
	}
	switch c := slices.Collect(maps.Values(w.claims)); {
	case len(c) == 0:
	case u.overlaps && len(c) == 1 && c[0].held:
	default:
		return
	}
	if u.current == w.links[0] {
		u.current = w.links[1]
	} else {
		u.current = w.links[0]
	}
	u.left, u.overlaps = 1+w.rng.IntN(16), w.rng.IntN(2) == 0
	if lock := w.nodes["/q/a"]; lock != nil && len(w.claims) == 0 && lock.creates < 20 && w.rng.IntN(2) == 0 {
		u.left = int(lock.creates) + w.rng.IntN(2)
		w.deleteAll()
	}
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
