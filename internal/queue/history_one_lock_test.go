package queue

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRandomHistoriesOfOneLock runs histories of one lock with many acquires of each client. Most
// wait for another acquire of the same client, and are granted by its release or by their
// sequence number. Operators delete the whole lock, so that its numbers start again. No acquire
// is granted before an entry that exists ahead of it.
func TestRandomHistoriesOfOneLock(t *testing.T) {
	runLockHistories(t, *lockHistoryCount, *oneLockHistory, newLockHistory)
}

// runLockHistories runs count histories of one lock, or only the one with the seed one if that
// is not 0, and prints its trace if it fails.
func runLockHistories(t *testing.T, count, one uint64, newOne func(seed uint64) *history) {
	if randomRuns < 100 {
		count = 30
	}
	first := uint64(0)
	if one != 0 {
		first, count = one, 1
	}
	granted := 0
	for seed := first; seed < first+count; seed++ {
		w := newOne(seed)
		if err := w.run(); err != nil {
			if one != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
	}
	if granted < int(count)*18 {
		t.Errorf("%d acquires granted in %d histories: this tests nothing", granted, count)
	}
}

var lockHistoryCount = flag.Uint64("lock-histories", 300, "the number of histories of one lock")
var oneLockHistory = flag.Uint64("lock-history", 0, "run only the history of one lock with this seed, and print its trace")

func newLockHistory(seed uint64) *history {
	w := newHistory(seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	w.layout = []Names{{}, {}, {}, {Layout: Mixed}}[rng.IntN(4)]
	w.operators, w.most, w.delay = rng.IntN(3) > 0, 2+rng.IntN(6), 0
	w.links = w.links[:2]
	readers := rng.IntN(2) == 0
	w.oneLock = func() Spec {
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

// TestRandomHistoriesOfBursts runs histories of one lock of which one client starts several acquires
// at a time. Their numbers follow each other, so that most need no listing, and after a few of
// them a watch on the lock's znode proves that. Operators delete the lock while requests are in
// flight, and programs of other sessions create it again and use up about as many numbers. So a
// number may directly follow one of the former znode. No acquire is granted before an entry that
// exists ahead of it.
func TestRandomHistoriesOfBursts(t *testing.T) {
	runLockHistories(t, *burstHistoryCount, *oneBurstHistory, newBurstHistory)
}

var burstHistoryCount = flag.Uint64("burst-histories", 300, "the number of histories of bursts")
var oneBurstHistory = flag.Uint64("burst-history", 0, "run only the history of bursts with this seed, and print its trace")

func newBurstHistory(seed uint64) *history {
	w := newHistory(seed)
	w.layout, w.operators, w.most, w.delay = Names{}, true, 12, 0
	w.links = w.links[:2]
	w.bursts, w.strangers = true, map[string]time.Duration{}
	w.oneLock = func() Spec {
		m := Member{Path: "/q/a", Writer: w.rng.IntN(8) == 0}
		return Spec{Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond, Members: []Member{m}}
	}
	return w
}

// TestRandomHistoriesOfSoleUse runs histories of one lock that the clients use in turns, several
// times in a row and with one acquire at a time, so that most are granted by their sequence
// number alone. Between two turns, operators may delete the lock, so that the numbers start
// again. The number of the next turn may then follow that of the client's last one by chance. No
// acquire is granted before an entry that exists ahead of it.
func TestRandomHistoriesOfSoleUse(t *testing.T) {
	seeds := uint64(*turnHistoryCount)
	if randomRuns < 100 {
		seeds = 30
	}
	first := uint64(0)
	if *oneTurnHistory != 0 {
		first, seeds = *oneTurnHistory, *oneTurnHistory+1
	}
	granted, unlisted := 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newHistory(seed)
		w.layout, w.operators, w.most, w.delay = Names{}, seed%3 == 0, 1, 0
		w.links, w.turns = w.links[:2], &turns{}
		w.oneLock = func() Spec {
			return Spec{Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond, Members: []Member{{Path: "/q/a", Writer: w.rng.IntN(8) == 0}}}
		}
		if err := w.run(); err != nil {
			if *oneTurnHistory != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
		unlisted += w.turns.unlisted
	}
	t.Logf("%d granted, %d creates without a listing", granted, unlisted)
	if n := int(seeds - first); granted < n*60 || unlisted < n*30 {
		t.Errorf("%d granted, %d creates without a listing in %d histories: too few", granted, unlisted, n)
	}
}

var turnHistoryCount = flag.Uint64("turn-histories", 600, "the number of histories of turns")
var oneTurnHistory = flag.Uint64("turn-history", 0, "run only the history of turns with this seed, and print its trace")

// turns is the client that may acquire.
type turns struct {
	current  *link
	left     int  // acquires that are left of this turn
	overlaps bool // the next turn begins during its last hold
	unlisted int  // creates without a listing
}

// take reports whether it is a client's turn, and counts its acquire.
func (u *turns) take(l *link) bool {
	if u == nil {
		return true
	}
	if l != u.current || u.left == 0 {
		return false
	}
	u.left--
	return true
}

// count counts the creates of entries without a listing.
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

// turn lets a client act, and passes the turn to the other client when it is over. Some turns end
// during their last hold. After the others, the lock may be deleted. Then the other client uses as
// many sequence numbers as were used before, or one more.
func (w *history) turn(l *link) {
	w.act(l)
	u := w.turns
	if u.left > 0 || w.faultless {
		return
	}
	switch c := slices.Collect(maps.Values(w.acquires)); {
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
	u.left, u.overlaps = 1+w.rng.IntN(20), w.rng.IntN(2) == 0
	if lock := w.nodes["/q/a"]; lock != nil && len(w.acquires) == 0 && lock.creates < 28 && w.rng.IntN(2) == 0 {
		u.left = int(lock.creates) + w.rng.IntN(2)
		w.deleteAll()
	}
}

// deleteAll deletes the lock with its entries. The next acquire creates it again.
func (w *history) deleteAll() {
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

// checkOrder fails if an acquire was granted while an entry that it must wait for exists, unless
// its own client has canceled the acquire of that entry.
func (w *history) checkOrder(c *clientAcquire) {
	if !w.exists(c) {
		return // checkHolds reports it
	}
	shared := c.down || c.spec.Members[0].Kind == Shared
	l := w.layout.Sort(w.childrenOf("/q/a"))
	for _, e := range l.Queue {
		p := "/q/a/" + e.Name
		if slices.Contains(c.nodes, p) {
			return
		}
		if shared && e.Kind == Shared || w.nodes[p].owner == c.link.session && !w.hasAcquire(c.link, p) {
			continue
		}
		w.failf("c%d.%d was granted, and %s is ahead of %v", c.link.name, c.id, e.Name, c.nodes)
	}
}

// hasAcquire reports whether a client has an acquire with this znode.
func (w *history) hasAcquire(l *link, p string) bool {
	for _, acq := range l.core.acquires {
		if slices.ContainsFunc(acq.nodes(), func(n *node) bool { return n.path() == p }) {
			return true
		}
	}
	return false
}

// burst starts several acquires of the first client at once, as a program with many goroutines does,
// so that their numbers follow each other. The other client acquires rarely. If the first one
// watches the lock's znode or is about to, the lock may be deleted in the middle of a burst.
func (w *history) burst(l *link) {
	if l != w.links[0] {
		if w.rng.IntN(16) == 0 {
			w.acquire(l)
		}
		return
	}
	n, again := 1+w.rng.IntN(6), -1
	requested := slices.IndexFunc(l.in, func(r sentRequest) bool { return r.Kind == Get && r.Path == "/q/a" })
	if (l.data["/q/a"] || requested >= 0) && w.rng.IntN(4) == 0 {
		again = w.rng.IntN(n)
	}
	for i := range n {
		if i == again {
			served := w.rng.IntN(2) * len(l.in)
			if requested >= 0 {
				served = requested
			}
			for range served {
				w.serve(l)
			}
			w.startAgain()
		}
		w.acquire(l)
		w.collect(l)
	}
}

// startAgain deletes the lock with its entries, whatever is in flight. Programs without a core, such
// as other clients of this lock, create it again and use up as many numbers as before, or one more
// or less. The last of them keep their entries for a while. So the number of a client's next entry
// may directly follow that of its last one in the former znode.
func (w *history) startAgain() {
	lock := w.nodes["/q/a"]
	if lock == nil {
		return
	}
	used, kept := lock.creates, int32(1+w.rng.IntN(2))
	w.deleteAll()
	if w.nodes["/q/a"] == nil {
		w.zxid++
		w.create(Creation{Path: "/q/a", Persistent: true}, 0, true)
		w.made("/q/a")
	}
	w.nodes["/q/a"].creates = max(0, used-kept+int32(w.rng.IntN(6)/5))
	for range kept {
		w.zxid++
		w.guids++
		made, _ := w.create(Creation{Path: fmt.Sprintf("/q/a/_c_ffffffff-ffff-ffff-ffff-%012x-lock-", w.guids), Sequential: true}, math.MaxInt64, false)
		w.made(made)
		w.logf("stranger enters %s", made)
		w.strangers[made] = w.now + time.Duration(w.rng.IntN(3000))*time.Millisecond
	}
}

// leaveStrangers deletes the entries of programs without a core whose time is over.
func (w *history) leaveStrangers() {
	for _, p := range slices.Sorted(maps.Keys(w.strangers)) {
		if w.now < w.strangers[p] {
			continue
		}
		delete(w.strangers, p)
		if w.nodes[p] != nil {
			w.logf("stranger leaves %s", p)
			w.zxid++
			w.remove(p)
		}
	}
}
