package queue

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRandomHistoriesWithReusedNames runs histories in which names have no GUID and operators
// delete whole locks, so that the znode of another client can get the name of a client's own. No
// client that has read all answers and events deletes the znode of another.
func TestRandomHistoriesWithReusedNames(t *testing.T) {
	seeds := uint64(*historyCount)
	if randomRuns < 100 {
		seeds = 40
	}
	first := uint64(0)
	if *oneHistory != 0 {
		first, seeds = *oneHistory, *oneHistory+1
	}
	granted, swept := 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newHistory(seed)
		w.operators, w.deletesLocks, w.delay = true, true, 0
		w.layout = Names{Layout: Custom, Prefix: "host", Exclusive: "-W-", Shared: "-R-"}
		w.deletes = w.checkDelete
		if seed%2 == 0 { // because a lost downgrade is too rare otherwise
			w.spec = func() Spec {
				m := Member{Path: "/q/a", Names: w.layout, Writer: w.rng.IntN(4) > 0}
				if !m.Writer {
					m.Kind = Shared
				}
				return Spec{Members: []Member{m}, Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond}
			}
		}
		if err := w.run(); err != nil {
			if *oneHistory != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
		swept += w.deletedLocks
	}
	if n := int(seeds - first); granted < n*20 || swept < n {
		t.Errorf("%d acquires granted, %d locks deleted: this tests nothing", granted, swept)
	}
}

// deleteLock deletes the lock of this entry, so that its numbers start again.
func (w *history) deleteLock(entry string) {
	w.deletedLocks++
	dir := parentOf(entry)
	w.logf("operator deletes %s", dir)
	w.touched = true
	whole := dir
	if base := baseOf(dir); base == "locks" || base == "leases" || dir == "/q/n" {
		whole = entry
	}
	for _, name := range w.childrenOf(whole) {
		w.zxid++
		w.remove(whole + "/" + name)
	}
	w.zxid++
	w.remove(whole)
}

// checkDelete fails if a client deletes the znode of another, although no answer or event about
// it is in flight.
func (w *history) checkDelete(l *link, r Request) {
	paths := slices.Clone(r.Paths)
	switch r.Kind {
	case Delete:
		paths = []string{r.Path}
	case Swap, Renew:
	default:
		return
	}
	if !l.informed() {
		return
	}
	for _, p := range paths {
		if n := w.nodes[p]; n != nil && n.owner != 0 && n.owner != l.session && l.watched(p) {
			w.failf("c%d deletes %s of session %d: %s", l.name, p, n.owner, show(r))
		}
	}
}

// informed reports whether a client is connected and nothing is in flight.
func (l *link) informed() bool { return l.up && len(l.in)+len(l.out)+len(l.late) == 0 }

// checkOwnZnodes fails if an informed client takes the znode of another for that of its hold. It
// does not check permits: their names have GUIDs, and the next heartbeat detects a deletion.
func (w *history) checkOwnZnodes() {
	for _, c := range w.acquires {
		if c.held && len(c.spec.Semaphores) == 0 && c.link.informed() && !w.exists(c) && c.link.session != 0 && c.link.watches(c) {
			w.failf("c%d.%d holds by %v, which are not its own any more", c.link.name, c.id, c.nodes)
		}
	}
}

// watched reports whether the client has requested a watch of each own znode with this path.
func (l *link) watched(p string) bool {
	nodes := slices.Clone(l.core.pendingDeletes)
	for _, acq := range l.core.acquires {
		nodes = append(nodes, acq.nodes()...)
	}
	return !slices.ContainsFunc(nodes, func(n *node) bool { return n.path() == p && !n.watch.requested() })
}

// watches reports whether all znodes of a hold are watched, and no downgrade is in progress.
func (l *link) watches(c *clientAcquire) bool {
	return !l.downgrading(c.id) && !slices.ContainsFunc(c.nodes, func(p string) bool { return !l.watched(p) })
}
