package kinds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/zklock/test/history"
)

// Node is the mode of a claim on a node lock, whose waiters have no order.
const Node history.Mode = "node"

// World is one state that the locks may be in: who waits where, and who holds.
// It is the sequential model of all kinds of lock.
//
// An entry stands in the queues of all its exclusive and shared claims at once,
// and goes on when nobody ahead in any of them is in its way. Then it takes its
// semaphores one by one in the order of their paths: it queues for the gate,
// and leaves the gate with its permits when they suffice.
type World struct {
	entries map[int]entry
	queues  map[string][]int // by path, in the order of arrival; of a semaphore, its gate
}

// entry is one acquire, from its call to its hold's end.
type entry struct {
	client int
	claims []history.Claim
	stage  int
	levels int // of its hold, once it has one
}

// The stages before those of the semaphores, which count from first on.
const (
	outside = iota // has no place in any queue yet
	queued         // has one in all its queues
	first          // waits for its first semaphore
)

// NewWorld is one in which nobody holds or waits.
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

// key is equal for worlds that are.
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

// String says who holds and who waits.
func (w *World) String() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(w.entries)) {
		e := w.entries[id]
		fmt.Fprintf(&b, "%d of client %d at stage %d of %d, %d levels, %v; ", id, e.client, e.stage, e.done(), e.levels, e.claims)
	}
	return fmt.Sprintf("[%squeues %v]", b.String(), w.queues)
}

// semaphores are the claims of permits, in the order in which they are taken.
func (e entry) semaphores() []history.Claim {
	all := slices.DeleteFunc(slices.Clone(e.claims), func(c history.Claim) bool { return c.Mode != history.Permit })
	slices.SortFunc(all, func(a, b history.Claim) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// done is the stage of an entry that holds.
func (e entry) done() int { return first + 2*len(e.semaphores()) }

// Held are the entries that hold, in the order of their names.
func (w *World) Held() []int { return w.filter(func(e entry) bool { return e.stage == e.done() }) }

// Waiting are the entries that do not.
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

// Arrive has a client ask.
func (w *World) Arrive(id, client int, claims []history.Claim) *World {
	c := w.clone()
	c.entries[id] = entry{client: client, claims: claims, levels: 1}
	return c
}

// Leave has an entry go, by a cancel, or by a release whatever its levels.
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

// Enter has a holder take its lock once more; Exit is the release of one level.
func (w *World) Enter(id int) *World {
	c := w.clone()
	e := c.entries[id]
	e.levels++
	c.entries[id] = e
	return c
}

// Exit has a holder release once: the last of its levels ends the hold.
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

// Lower makes the exclusive claims of a holder shared.
func (w *World) Lower(id int) *World {
	c := w.clone()
	e := c.entries[id]
	e.claims = slices.Clone(e.claims)
	for i := range e.claims {
		if e.claims[i].Mode == history.Exclusive {
			e.claims[i].Mode = history.Shared
		}
	}
	c.entries[id] = e
	return c
}

// Expire ends the session of a client: what it held is lost, and who waited asks
// again, behind everybody, in no particular order.
func (w *World) Expire(client int) *World {
	c := w.clone()
	for id, e := range w.entries {
		if e.client != client {
			continue
		}
		c.leave(id)
		// The acquire goes on in the client's next session.
		if e.stage != e.done() {
			e.stage = outside
			c.entries[id] = e
		}
	}
	return c
}

// Settle returns the worlds in which nothing goes on any more, after all that
// can go on in this one has, in every order.
func (w *World) Settle() []*World {
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

// steps are the worlds after one entry went on by one stage. Where the order in
// which entries go on makes no difference, there is only one.
func (w *World) steps() []*World {
	var all []*World
	outsiders := len(w.filter(func(e entry) bool { return e.stage == outside }))
	for id, e := range w.entries {
		c := w.clone()
		if !c.advance(id, e) {
			continue
		}
		switch {
		// An entry whose way is free stays free, whatever the others do, and a single
		// newcomer comes last in any case. But who of several comes to a gate first,
		// or takes a node, is open.
		case e.stage == queued && e.claims[0].Mode != Node,
			e.stage == outside && outsiders == 1,
			e.stage >= first && (e.stage-first)%2 == 1:
			return []*World{c}
		}
		all = append(all, c)
	}
	return all
}

// advance has an entry go on, if it can.
func (w *World) advance(id int, e entry) bool {
	switch {
	case e.stage == e.done():
		return false
	case e.stage == outside:
		// All queues are joined in one transaction: there is no world in which an
		// entry stands in some of them only.
		for _, c := range e.claims {
			if c.Mode == history.Exclusive || c.Mode == history.Shared {
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
		// Only the head of the gate takes permits, however few others behind it ask
		// for: so nobody is overtaken, and nobody who asks for many starves.
		if w.queues[c.Path][0] != id || w.permits(c.Path)+c.Permits > c.Of {
			return false
		}
		if w.queues[c.Path] = w.queues[c.Path][1:]; len(w.queues[c.Path]) == 0 {
			delete(w.queues, c.Path)
		}
	}
	e.stage++
	w.entries[id] = e // in a clone, which is what advance works on
	return true
}

// free reports whether nobody is in the way of an entry in its queues, or at the
// node of its node lock.
func (w *World) free(id int, e entry) bool {
	for _, c := range e.claims {
		switch c.Mode {
		case Node:
			// Nobody is ahead of anybody; only whoever has the node is in the way.
			if len(w.filter(func(o entry) bool { return o.stage > queued && o.claims[0].Path == c.Path })) > 0 {
				return false
			}
		case history.Exclusive, history.Shared:
			for _, ahead := range w.queues[c.Path] {
				if ahead == id {
					break
				}
				if c.Mode == history.Exclusive || w.mode(ahead, c.Path) == history.Exclusive {
					return false
				}
			}
		}
	}
	return true
}

// mode is how an entry claims a path.
func (w *World) mode(id int, path string) history.Mode {
	for _, c := range w.entries[id].claims {
		if c.Path == path {
			return c.Mode
		}
	}
	return ""
}

// permits is how many of a semaphore's are taken.
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
