package queue

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestForesight is a storm about one lock of many clients with a claim or two each, so
// that most wait behind several others': with nearest ones that are granted, give up,
// are deleted, overwritten and expire, while listings are under way or are lost. Nobody
// passes an entry that is there, and nobody looks at more than a few things at once,
// whatever it is told.
func TestForesight(t *testing.T) {
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
var sights = flag.Uint64("sight", 0, "run only the storm with this seed, and tell its story")

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
	w.ranges = map[*place]bool{}
	return w
}

// sightsOf counts what came of the foresight of a client that has just been told
// something, and says if that made it ask for more than a little.
func (w *storm) sightsOf(l *link, asked []Request) {
	if w.ranges == nil {
		return
	}
	for _, cl := range l.core.claims {
		for _, p := range cl.places {
			switch {
			case p.clear && w.ranges[p]:
				w.after++
				delete(w.ranges, p)
			case p.ranging && !w.ranges[p]:
				w.ranged++
				w.ranges[p] = true
			case p.listing:
				delete(w.ranges, p)
			}
		}
	}
	// The most is what a new connection makes it ask for: of each claim its own
	// entry and the nearest.
	reads := 0
	for _, r := range asked {
		if r.Watch || r.Kind == List {
			reads++
		}
	}
	if most := 6*len(l.core.claims) + 4; reads > most {
		w.failf("c%d looks at %d things at once", l.name, reads)
	}
}
