package queue

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStormsOfReusedNames is TestStorms where names have no GUID and operators delete whole
// locks, so that another's znode comes to the name of one's own: nobody asks for its end
// who has been told all that there was to tell.
func TestStormsOfReusedNames(t *testing.T) {
	seeds := uint64(*manyStorms)
	if histories < 100 {
		seeds = 40
	}
	first := uint64(0)
	if *storms != 0 {
		first, seeds = *storms, *storms+1
	}
	granted, swept := 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newStorm(seed)
		w.operators, w.sweeps, w.delay = true, true, 0
		w.layout = Names{Layout: Custom, Prefix: "host", Exclusive: "-W-", Shared: "-R-"}
		w.deletes = w.ownOnly
		if seed%2 == 0 { // else what a lost downgrade finds is too rare
			w.only = func() Spec {
				m := Member{Path: "/q/a", Names: w.layout, Writer: w.rng.IntN(4) > 0}
				if !m.Writer {
					m.Kind = Shared
				}
				return Spec{Members: []Member{m}, Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond}
			}
		}
		if err := w.run(); err != nil {
			if *storms != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
		swept += w.swept
	}
	if n := int(seeds - first); granted < n*20 || swept < n {
		t.Errorf("%d claims granted, %d locks deleted: no storms", granted, swept)
	}
}

// deleteLock deletes a lock that has this entry, and has others' numbers begin anew.
func (w *storm) deleteLock(entry string) {
	w.swept++
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

// ownOnly says if a client asks for the end of another's znode, though nothing that
// tells of it is on its way, nor is asked for.
func (w *storm) ownOnly(l *link, r Request) {
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
			w.failf("c%d asks for the end of %s, which is session %d's: %s", l.name, p, n.owner, show(r))
		}
	}
}

// informed reports whether a client has been told all that there was to tell, and has
// asked for nothing more.
func (l *link) informed() bool { return l.up && len(l.in)+len(l.out)+len(l.late) == 0 }

// deceived says if a client still takes another's znode for its hold's. Of permits, whose
// names have GUIDs, the next heartbeat tells, and not a watch.
func (w *storm) deceived() {
	for _, c := range w.claims {
		if c.held && len(c.spec.Semaphores) == 0 && c.link.informed() && !w.there(c) && c.link.session != 0 && c.link.watches(c) {
			w.failf("c%d.%d holds by %v, which are not its own any more", c.link.name, c.id, c.nodes)
		}
	}
}

// watched reports whether a znode is watched, as far as the client knows: a watch that was
// not answered is asked for again in a moment.
func (l *link) watched(p string) bool {
	nodes := slices.Clone(l.core.pendingDeletes)
	for _, acq := range l.core.acquires {
		nodes = append(nodes, acq.nodes()...)
	}
	return !slices.ContainsFunc(nodes, func(n *node) bool { return n.path() == p && !n.watch.requested() })
}

// watches reports whether a hold's znodes are all watched, and no downgrade is under way.
func (l *link) watches(c *claimed) bool {
	return !l.changing(c.id) && !slices.ContainsFunc(c.nodes, func(p string) bool { return !l.watched(p) })
}
