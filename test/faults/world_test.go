package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/zklock/test/model"
)

// Node is the mode of a claim on a node lock, whose waiters have no order.
const Node model.Mode = "node"

// World is one possible state of the locks: their holders and their queues. It is the
// sequential model of all kinds of lock.
//
// An entry enqueues in the queues of all its exclusive and shared claims at once, and
// advances when no predecessor in any queue conflicts with it. Then it acquires its
// semaphores one by one in the order of their paths: it enqueues at the gate, and leaves the
// gate when enough permits are free.
type World struct {
	entries map[int]entry
	queues  map[string][]int // by path, in the order of arrival; for a semaphore, the gate
}

// entry is one acquire, from its call to the end of its hold.
type entry struct {
	client int
	claims []model.Claim
	stage  int
	levels int // of its hold
}

// The stages of an entry. Each semaphore has two stages, from first on.
const (
	outside = iota // in no queue yet
	queued         // in all its queues
	first          // waits for its first semaphore
)

// NewWorld returns a world without holders and waiters.
func NewWorld() *World {
	return &World{entries: map[int]entry{}, queues: map[string][]int{}}
}

func (w *World) clone() *World {
	c := &World{entries: maps.Clone(w.entries), queues: map[string][]int{}}
	for path, q := range w.queues {
		c.queues[path] = slices.Clone(q)
	}
	return c
}

// key is equal for equal worlds.
func (w *World) key() string {
	b := make([]byte, 0, 256)
	number := func(n int) { b = strconv.AppendInt(append(b, ' '), int64(n), 10) }
	for _, id := range slices.Sorted(maps.Keys(w.entries)) {
		e := w.entries[id]
		number(id)
		number(e.stage)
		number(e.levels)
		b = append(b, e.claims[0].Mode...)
	}
	for _, path := range slices.Sorted(maps.Keys(w.queues)) {
		b = append(append(b, ' '), path...)
		for _, id := range w.queues[path] {
			number(id)
		}
	}
	return string(b)
}

// String returns the holders and the queues.
func (w *World) String() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(w.entries)) {
		e := w.entries[id]
		fmt.Fprintf(&b, "%d of client %d at stage %d of %d, %d levels, %v; ", id, e.client, e.stage, e.done(), e.levels, e.claims)
	}
	return fmt.Sprintf("[%squeues %v]", b.String(), w.queues)
}

// semaphores returns the claims of permits in the order of their acquires.
func (e entry) semaphores() []model.Claim {
	all := slices.DeleteFunc(slices.Clone(e.claims), func(c model.Claim) bool { return c.Mode != model.Permit })
	slices.SortFunc(all, func(a, b model.Claim) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// done returns the stage of a holder.
func (e entry) done() int { return first + 2*len(e.semaphores()) }

// Held returns the holders, sorted by ID.
func (w *World) Held() []int { return w.filter(func(e entry) bool { return e.stage == e.done() }) }

// Waiting returns the entries that do not hold.
func (w *World) Waiting() []int { return w.filter(func(e entry) bool { return e.stage != e.done() }) }

func (w *World) filter(keep func(entry) bool) []int {
	var ids []int
	for _, id := range slices.Sorted(maps.Keys(w.entries)) {
		if keep(w.entries[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Arrive adds an entry of a client.
func (w *World) Arrive(id, client int, claims []model.Claim) *World {
	c := w.clone()
	c.entries[id] = entry{client: client, claims: claims, levels: 1}
	return c
}

// Leave removes an entry, by a cancel or by a release of all levels.
func (w *World) Leave(id int) *World {
	c := w.clone()
	c.leave(id)
	return c
}

func (w *World) leave(id int) {
	delete(w.entries, id)
	for path, q := range w.queues {
		q = slices.DeleteFunc(q, func(other int) bool { return other == id })
		if w.queues[path] = q; len(q) == 0 {
			delete(w.queues, path)
		}
	}
}

// Enter makes a holder enter its lock again.
func (w *World) Enter(id int) *World {
	c := w.clone()
	e := c.entries[id]
	e.levels++
	c.entries[id] = e
	return c
}

// Exit releases one level: the last one ends the hold.
func (w *World) Exit(id int) *World {
	c := w.clone()
	e := c.entries[id]
	if e.levels--; e.levels == 0 {
		c.leave(id)
		return c
	}
	c.entries[id] = e
	return c
}

// Downgrade makes the exclusive claims of a holder shared.
func (w *World) Downgrade(id int) *World {
	c := w.clone()
	e := c.entries[id]
	e.claims = slices.Clone(e.claims)
	for i := range e.claims {
		if e.claims[i].Mode == model.Exclusive {
			e.claims[i].Mode = model.Shared
		}
	}
	c.entries[id] = e
	return c
}

// Expire ends the session of a client. Its holds are lost, and its waiters enqueue again at
// the end, in any order.
func (w *World) Expire(client int) *World {
	c := w.clone()
	for id, e := range w.entries {
		if e.client != client {
			continue
		}
		c.leave(id)
		// The acquire continues in the client's next session.
		if e.stage != e.done() {
			e.stage = outside
			c.entries[id] = e
		}
	}
	return c
}

// Outcomes advances entries in every possible order until no entry can advance, and returns
// the resulting worlds.
func (w *World) Outcomes() []*World {
	var rest []*World
	seen := map[string]bool{w.key(): true}
	for open := []*World{w}; len(open) > 0; {
		next := open[0]
		open = open[1:]
		steps := next.steps()
		if len(steps) == 0 {
			rest = append(rest, next)
		}
		for _, s := range steps {
			if k := s.key(); !seen[k] {
				seen[k] = true
				open = append(open, s)
			}
		}
	}
	return rest
}

// steps returns the worlds after one entry has advanced by one stage. If the order of
// entries makes no difference, it returns only one world.
func (w *World) steps() []*World {
	var all []*World
	outsiders := len(w.filter(func(e entry) bool { return e.stage == outside }))
	for id, e := range w.entries {
		c := w.clone()
		if !c.advance(id, e) {
			continue
		}
		switch {
		// The order does not matter for an entry without a conflicting predecessor, and for a
		// single new entry. It matters for entries at a gate or a node lock.
		case e.stage == queued && e.claims[0].Mode != Node,
			e.stage == outside && outsiders == 1,
			e.stage >= first && (e.stage-first)%2 == 1:
			return []*World{c}
		}
		all = append(all, c)
	}
	return all
}

// advance advances an entry, if it can.
func (w *World) advance(id int, e entry) bool {
	switch {
	case e.stage == e.done():
		return false
	case e.stage == outside:
		// An entry enqueues in all queues in one transaction.
		for _, c := range e.claims {
			if c.Mode == model.Exclusive || c.Mode == model.Shared {
				w.queues[c.Path] = append(w.queues[c.Path], id)
			}
		}
	case e.stage == queued:
		if !w.free(id, e) {
			return false
		}
	default:
		c := e.semaphores()[(e.stage-first)/2]
		if (e.stage-first)%2 == 0 {
			w.queues[c.Path] = append(w.queues[c.Path], id)
			break
		}
		// Only the first entry at the gate takes permits, even if its successors need fewer. So
		// a waiter for many permits does not starve.
		if w.queues[c.Path][0] != id || w.permits(c.Path)+c.Permits > c.Of {
			return false
		}
		if w.queues[c.Path] = w.queues[c.Path][1:]; len(w.queues[c.Path]) == 0 {
			delete(w.queues, c.Path)
		}
	}
	e.stage++
	w.entries[id] = e
	return true
}

// free reports whether no predecessor in its queues, and no holder of its node lock,
// conflicts with an entry.
func (w *World) free(id int, e entry) bool {
	for _, c := range e.claims {
		switch c.Mode {
		case Node:
			// Waiters have no order; only the holder of the node conflicts.
			if len(w.filter(func(o entry) bool { return o.stage > queued && o.claims[0].Path == c.Path })) > 0 {
				return false
			}
		case model.Exclusive, model.Shared:
			for _, ahead := range w.queues[c.Path] {
				if ahead == id {
					break
				}
				if c.Mode == model.Exclusive || w.mode(ahead, c.Path) == model.Exclusive {
					return false
				}
			}
		}
	}
	return true
}

// mode returns how an entry claims a path.
func (w *World) mode(id int, path string) model.Mode {
	for _, c := range w.entries[id].claims {
		if c.Path == path {
			return c.Mode
		}
	}
	return ""
}

// permits returns the number of taken permits of a semaphore.
func (w *World) permits(path string) int {
	n := 0
	for _, e := range w.entries {
		for i, c := range e.semaphores() {
			if c.Path == path && e.stage >= first+2*(i+1) {
				n += c.Permits
			}
		}
	}
	return n
}

var (
	write = []model.Claim{{Path: "/x", Mode: model.Exclusive}}
	read  = []model.Claim{{Path: "/x", Mode: model.Shared}}
	node  = []model.Claim{{Path: "/n", Mode: Node}}
	both  = []model.Claim{{Path: "/x", Mode: model.Exclusive}, {Path: "/y", Mode: model.Exclusive}}
	other = []model.Claim{{Path: "/y", Mode: model.Exclusive}}
)

func permitsOf(k int) []model.Claim {
	return []model.Claim{{Path: "/s", Mode: model.Permit, Permits: k, Of: 3}}
}

// arrived returns a world in which clients 1, 2, ... have requested claims one after the other.
func arrived(t *testing.T, claims ...[]model.Claim) *World {
	t.Helper()
	w := NewWorld()
	for i, c := range claims {
		w = onlyWorld(t, w.Arrive(i+1, i+1, c).Outcomes())
	}
	return w
}

func onlyWorld(t *testing.T, worlds []*World) *World {
	t.Helper()
	if len(worlds) != 1 {
		t.Fatalf("%d worlds: %v", len(worlds), worlds)
	}
	return worlds[0]
}

func expectHolders(t *testing.T, w *World, ids ...int) {
	t.Helper()
	if !slices.Equal(w.Held(), ids) {
		t.Errorf("%v hold, not %v: %v", w.Held(), ids, w)
	}
}

func TestWorldGrantsInOrder(t *testing.T) {
	t.Run("in the order of arrival", func(t *testing.T) {
		w := arrived(t, write, write, write)
		expectHolders(t, w, 1)
		w = onlyWorld(t, w.Leave(2).Outcomes())
		expectHolders(t, w, 1)
		expectHolders(t, onlyWorld(t, w.Exit(1).Outcomes()), 3)
	})
	t.Run("readers share, writers do not", func(t *testing.T) {
		w := arrived(t, read, read, write, read)
		expectHolders(t, w, 1, 2)
		w = onlyWorld(t, w.Exit(1).Outcomes())
		expectHolders(t, w, 2)
		w = onlyWorld(t, w.Exit(2).Outcomes())
		expectHolders(t, w, 3)
		expectHolders(t, onlyWorld(t, w.Downgrade(3).Outcomes()), 3, 4)
		expectHolders(t, onlyWorld(t, w.Exit(3).Outcomes()), 4)
	})
	t.Run("a downgrade lets no writer in", func(t *testing.T) {
		w := arrived(t, write, write, read)
		expectHolders(t, onlyWorld(t, w.Downgrade(1).Outcomes()), 1)
	})
	t.Run("levels", func(t *testing.T) {
		w := arrived(t, write, write).Enter(1)
		w = onlyWorld(t, w.Exit(1).Outcomes())
		expectHolders(t, w, 1)
		expectHolders(t, onlyWorld(t, w.Exit(1).Outcomes()), 2)
	})
	t.Run("permits, in the order of arrival", func(t *testing.T) {
		w := arrived(t, permitsOf(2), permitsOf(2), permitsOf(1))
		expectHolders(t, w, 1) // enough permits for 3, but 2 is first at the gate
		w = onlyWorld(t, w.Exit(1).Outcomes())
		expectHolders(t, w, 2, 3)
	})
	t.Run("all or nothing", func(t *testing.T) {
		w := arrived(t, other, both, write)
		expectHolders(t, w, 1)
		expectHolders(t, onlyWorld(t, w.Leave(2).Outcomes()), 1, 3)
		w = onlyWorld(t, w.Exit(1).Outcomes())
		expectHolders(t, w, 2)
		expectHolders(t, onlyWorld(t, w.Exit(2).Outcomes()), 3)
	})
	t.Run("semaphores come after the queues", func(t *testing.T) {
		w := arrived(t, write, append(slices.Clone(write), permitsOf(3)...), permitsOf(1))
		expectHolders(t, w, 1, 3)
		w = onlyWorld(t, w.Exit(1).Outcomes())
		expectHolders(t, w, 3)
		expectHolders(t, onlyWorld(t, w.Exit(3).Outcomes()), 2)
	})
	t.Run("any waiter of a node", func(t *testing.T) {
		w := arrived(t, node, node, node)
		expectHolders(t, w, 1)
		worlds := w.Exit(1).Outcomes()
		if len(worlds) != 2 {
			t.Fatalf("%v", worlds)
		}
		for _, w := range worlds {
			if len(w.Held()) != 1 || w.Held()[0] == 1 {
				t.Error(w)
			}
		}
	})
	t.Run("a session's end", func(t *testing.T) {
		w := NewWorld().Arrive(1, 1, write).Outcomes()[0]
		w = w.Arrive(2, 1, write).Outcomes()[0] // a waiter of the same client
		w = w.Arrive(3, 2, write).Outcomes()[0]
		w = onlyWorld(t, w.Expire(1).Outcomes())
		expectHolders(t, w, 3)
		if !slices.Equal(w.Waiting(), []int{2}) {
			t.Error(w)
		}
		expectHolders(t, onlyWorld(t, w.Exit(3).Outcomes()), 2)
	})
	t.Run("a session's end with two that wait", func(t *testing.T) {
		w := NewWorld().Arrive(1, 1, write).Outcomes()[0]
		w = w.Arrive(2, 2, write).Outcomes()[0]
		w = w.Arrive(3, 2, write).Outcomes()[0]
		if worlds := w.Expire(2).Outcomes(); len(worlds) != 2 {
			t.Error(worlds)
		}
	})
}
