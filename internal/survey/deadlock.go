package survey

import (
	"slices"

	"github.com/zklock/zklock"
)

// A Deadlock is a circle of sessions of which each waits for the next.
type Deadlock struct {
	// Circle begins with the session whose id is the smallest.
	Circle []Link
	// Behind counts the other sessions that can't go on before the circle is
	// broken.
	Behind int
	// Plain says that each session in the circle waits for one thing. One that
	// waits for several has several threads or goroutines, of which one may yet
	// release what another waits for.
	Plain bool
}

// A Link is one session of a circle: it waits, for what the next one has.
type Link struct {
	Session int64
	// Has is what the link before waits for: an entry of this session that holds,
	// or that stands further ahead in a queue.
	Has Entry
	// Waits is the entry of this session that waits, in the queue in which the
	// next link's Has stands.
	Waits Entry
}

// Deadlocks finds circles of sessions that wait for each other over several locks.
// Every session that can't go on is in one of them or counted behind one. Their
// order and their beginnings depend on nothing but the sessions.
//
// It takes a session for one thread, that releases nothing while it waits. What
// waits for itself alone is left out: such a session has several threads, or an
// error that no other takes part in. A semaphore's waiter counts as one who wants
// one permit: how many it wants is written nowhere, so that a deadlock over a
// semaphore that has a permit to give is not found.
//
// The locks are to be of one moment: see [Steady]. It takes time in proportion to
// the entries.
func Deadlocks(locks []*Lock) []Deadlock {
	g := newGraph(locks)
	g.reduce()
	return g.circles()
}

// Steady keeps of two looks at the same locks, of which the second began when the
// first had ended, what both saw in the same state. All of it was there at the
// moment between them, which is what makes a circle in it a true one: locks that are
// read one after another may show a circle that never was. A semaphore of which
// permits came or went keeps no waiters, as there was one to be had.
func Steady(first, second []*Lock) []*Lock {
	type state struct {
		node    string
		token   int64
		session int64
		holder  bool
	}
	of := func(e Entry) state { return state{e.Node, e.Token, e.Session, e.Holder} }
	seen := map[state]bool{}
	before := map[string]int{}
	for _, l := range first {
		for _, e := range l.Entries {
			seen[of(e)] = true
			if leased(e.Entry) {
				before[l.Path]++
			}
		}
	}
	var both []*Lock
	for _, l := range second {
		kept, permits, moved := *l, 0, false
		kept.Entries = nil
		for _, e := range l.Entries {
			if leased(e.Entry) {
				permits++
				moved = moved || !seen[of(e)]
			}
			if seen[of(e)] {
				kept.Entries = append(kept.Entries, e)
			}
		}
		if moved || permits != before[l.Path] {
			kept.Entries = slices.DeleteFunc(kept.Entries, func(e Entry) bool { return e.Mode == zklock.Permit && !leased(e.Entry) })
		}
		both = append(both, &kept)
	}
	return both
}

// wait is one entry that waits.
type wait struct {
	entry Entry
	on    []Entry // of other sessions
	any   bool           // for any one of on, instead of for all of them
	open  int            // how many of on stand in the way still
}

// graph is who waits for whom.
type graph struct {
	waits []wait
	of    map[int64][]int // a session's waits
	on    map[int64][]int // the waits on a session, one for each entry of on
	left  map[int64]int   // how many waits of a session are open
	locks map[string]*Lock
}

// newGraph reads who waits for whom off the locks.
func newGraph(locks []*Lock) *graph {
	g := &graph{of: map[int64][]int{}, on: map[int64][]int{}, left: map[int64]int{}, locks: map[string]*Lock{}}
	for _, l := range locks {
		g.locks[l.Path] = l
		g.queue(l.Entries)
		g.semaphore(l)
	}
	return g
}

// queue adds the waits in a queue of exclusive and shared entries. One that is
// exclusive waits for all ahead of it, and a shared one for the exclusive ones. It is
// enough to say so up to the nearest exclusive one, which waits for the others.
func (g *graph) queue(entries []Entry) {
	var ahead []Entry // from the last exclusive entry on
	for _, e := range entries {
		switch e.Mode {
		case zklock.Exclusive:
			g.add(e, ahead, false)
			ahead = []Entry{e}
		case zklock.Shared:
			if len(ahead) > 0 && ahead[0].Mode == zklock.Exclusive {
				g.add(e, ahead[:1], false)
			}
			ahead = append(ahead, e)
		}
	}
}

// semaphore adds the waits at a semaphore's gate. The first one there waits for a
// permit, which anybody's release gives it.
func (g *graph) semaphore(l *Lock) {
	var permits, gate []Entry
	for _, e := range l.Entries {
		switch {
		case leased(e.Entry):
			permits = append(permits, e)
		case e.Mode == zklock.Permit:
			gate = append(gate, e)
		}
	}
	for i, e := range gate {
		switch {
		case i > 0:
			g.add(e, gate[i-1:i], false)
		case l.Permits == 0 || len(permits) >= l.Permits:
			g.add(e, permits, true)
		}
	}
}

// add adds a wait.
func (g *graph) add(e Entry, on []Entry, anyOne bool) {
	if e.Holder || e.Session == 0 {
		return
	}
	w := wait{entry: e, any: anyOne}
	for _, o := range on {
		// What belongs to no session is in the way for ever, but in no circle.
		if o.Session != e.Session && o.Session != 0 {
			w.on = append(w.on, o)
		}
	}
	if w.open = len(w.on); w.open == 0 {
		return
	}
	n := len(g.waits)
	g.waits = append(g.waits, w)
	g.of[e.Session] = append(g.of[e.Session], n)
	g.left[e.Session]++
	for _, o := range w.on {
		g.on[o.Session] = append(g.on[o.Session], n)
	}
}

// reduce withdraws the sessions that wait for nothing, then those that waited for
// these alone, and so on. The rest can't go on.
func (g *graph) reduce() {
	var next []int64
	for session := range g.on {
		if g.left[session] == 0 {
			next = append(next, session)
		}
	}
	for len(next) > 0 {
		session := next[len(next)-1]
		next = next[:len(next)-1]
		for _, n := range g.on[session] {
			w := &g.waits[n]
			if w.open == 0 {
				continue
			}
			if w.open--; w.any {
				w.open = 0
			}
			if w.open == 0 {
				if g.left[w.entry.Session]--; g.left[w.entry.Session] == 0 {
					next = append(next, w.entry.Session)
				}
			}
		}
	}
}

// step is the one wait by which a circle is followed from a session.
type step struct{ waits, on Entry }

// next chooses a session's step: the first of its waits that is stuck, on who holds
// what it waits for if that one is stuck too, else on the nearest one who is. Who
// holds is whom people know; those between come from patience alone.
func (g *graph) next(session int64) step {
	for _, n := range g.of[session] {
		w := g.waits[n]
		if w.open == 0 {
			continue
		}
		stuck := func(e Entry) bool {
			return e.Session != session && g.left[e.Session] > 0
		}
		if w.entry.Mode != zklock.Permit {
			if i := slices.IndexFunc(g.locks[w.entry.Path].Entries, func(e Entry) bool {
				return e.Holder && e.Mode != zklock.Permit && stuck(e)
			}); i >= 0 {
				return step{w.entry, g.locks[w.entry.Path].Entries[i]}
			}
		}
		if i := slices.IndexFunc(w.on, stuck); i >= 0 {
			return step{w.entry, w.on[i]}
		}
	}
	return step{}
}

// circles follows the steps of the sessions that can't go on. Each leads into one
// circle.
func (g *graph) circles() []Deadlock {
	var stuck []int64
	steps := map[int64]step{}
	for session, open := range g.left {
		if open > 0 {
			stuck = append(stuck, session)
			steps[session] = g.next(session)
		}
	}
	slices.Sort(stuck)
	into := map[int64]int{} // which circle a session leads into, from 1; -1 while it is followed
	var found []Deadlock
	for _, first := range stuck {
		var way []int64
		s := first
		for ; into[s] == 0; s = steps[s].on.Session {
			into[s] = -1
			way = append(way, s)
		}
		n := into[s]
		if n < 0 {
			at := slices.Index(way, s)
			found = append(found, g.circle(way[at:], steps))
			n = len(found)
			found[n-1].Behind = -len(way[at:])
		}
		for _, session := range way {
			into[session] = n
		}
		found[n-1].Behind += len(way)
	}
	return found
}

// circle describes a circle of sessions.
func (g *graph) circle(sessions []int64, steps map[int64]step) Deadlock {
	least := slices.Index(sessions, slices.Min(sessions))
	sessions = append(slices.Clone(sessions[least:]), sessions[:least]...)
	d := Deadlock{Plain: true}
	for i, session := range sessions {
		before := sessions[(i+len(sessions)-1)%len(sessions)]
		d.Circle = append(d.Circle, Link{Session: session, Has: steps[before].on, Waits: steps[session].waits})
		first := g.waits[g.of[session][0]].entry.Token
		for _, n := range g.of[session] {
			d.Plain = d.Plain && g.waits[n].entry.Token == first
		}
	}
	return d
}
