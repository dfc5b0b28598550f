package survey

import (
	"slices"
	"strconv"

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
	// Session is that of the outermost command where one runs inside another; so it
	// is in the entries.
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
// one permit: how many it wants is written nowhere, so that one who waits for more
// than there are to give is not found.
//
// A zklock run inside another one has a session of its own, and counts as the outer
// one's: see [zklock.Owner].Within.
//
// The locks are to be of one moment: see [Steady]. It takes time in proportion to
// the entries.
func Deadlocks(locks []*Lock) []Deadlock {
	g := newGraph(together(locks))
	g.reduce()
	return g.circles()
}

// mostWithin bounds how many runs inside each other are followed.
const mostWithin = 16

// together gives the entries of a command that runs inside another one the session of
// the outermost. What an owner says of itself is anybody's text: it is believed if
// the other session is there, on the same host.
func together(locks []*Lock) []*Lock {
	outer, host, said := map[int64]int64{}, map[int64]string{}, map[int64]string{}
	for _, l := range locks {
		for _, e := range l.Entries {
			if e.Session != 0 && e.Owner.Host != "" {
				host[e.Session] = e.Owner.Host
			}
			if e.Owner.Within != "" {
				said[e.Session] = e.Owner.Within
			}
		}
	}
	for session, within := range said {
		id, err := strconv.ParseUint(within, 0, 64)
		if in := int64(id); err == nil && in != session && host[in] != "" && host[in] == host[session] {
			outer[session] = in
		}
	}
	if len(outer) == 0 {
		return locks
	}
	joined := make([]*Lock, len(locks))
	for i, l := range locks {
		copied := *l
		copied.Entries = slices.Clone(l.Entries)
		for j := range copied.Entries {
			e := &copied.Entries[j]
			for range mostWithin {
				in, is := outer[e.Session]
				if !is {
					break
				}
				e.Session = in
			}
		}
		joined[i] = &copied
	}
	return joined
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
	open  int     // how many of on stand in the way still; at a gate 1 until it is passed
	gate  *gate   // nil unless it is one at a semaphore's gate
}

// gate is who waits for a semaphore's permits, in order.
type gate struct {
	free    int           // permits that there are to give
	has     map[int64]int // permits of a session
	line    []int         // the waits, from the first in line on
	passed  int           // how many of line were given a permit
	permits []Entry
}

// graph is who waits for whom.
type graph struct {
	waits    []wait
	of       map[int64][]int // a session's waits
	on       map[int64][]int // the waits on a session, one for each entry of on
	left     map[int64]int   // how many waits of a session are open
	gates    map[int64][]*gate
	attempts map[int64]map[int64]bool // the tokens with which a session waits
	locks    map[string]*Lock
	next     []int64 // sessions that can go on, and were not withdrawn yet
}

// newGraph reads who waits for whom off the locks.
func newGraph(locks []*Lock) *graph {
	g := &graph{
		of: map[int64][]int{}, on: map[int64][]int{}, left: map[int64]int{}, gates: map[int64][]*gate{},
		attempts: map[int64]map[int64]bool{}, locks: map[string]*Lock{},
	}
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
			g.add(e, ahead)
			ahead = []Entry{e}
		case zklock.Shared:
			if len(ahead) > 0 && ahead[0].Mode == zklock.Exclusive {
				g.add(e, ahead[:1])
			}
			ahead = append(ahead, e)
		}
	}
}

// semaphore adds the waits at a semaphore's gate.
func (g *graph) semaphore(l *Lock) {
	s := &gate{has: map[int64]int{}}
	for _, e := range l.Entries {
		if leased(e.Entry) {
			s.permits = append(s.permits, e)
			s.has[e.Session]++
		}
	}
	s.free = max(0, l.Permits-len(s.permits))
	for session := range s.has {
		g.gates[session] = append(g.gates[session], s)
	}
	on := slices.Clone(s.permits)
	for _, e := range l.Entries {
		if e.Mode != zklock.Permit || leased(e.Entry) {
			continue
		}
		// A session with a permit that wants another has several threads, or harms
		// itself.
		if s.has[e.Session] > 0 {
			g.attempt(e)
			continue
		}
		if n := len(g.waits); g.add(e, on) {
			g.waits[n].open, g.waits[n].gate = 1, s
			s.line = append(s.line, n)
		}
		on = append(on, e)
	}
}

// add adds a wait for all of on, and reports whether it is one.
func (g *graph) add(e Entry, on []Entry) bool {
	if e.Holder || e.Session == 0 {
		return false
	}
	g.attempt(e)
	w := wait{entry: e, on: on}
	if e.Mode != zklock.Permit {
		// What belongs to no session is in the way for ever, but in no circle.
		w.on = slices.DeleteFunc(slices.Clone(on), func(o Entry) bool { return o.Session == e.Session || o.Session == 0 })
	}
	if w.open = len(w.on); w.open == 0 {
		return false
	}
	n := len(g.waits)
	g.waits = append(g.waits, w)
	g.of[e.Session] = append(g.of[e.Session], n)
	g.left[e.Session]++
	if e.Mode != zklock.Permit {
		for _, o := range w.on {
			g.on[o.Session] = append(g.on[o.Session], n)
		}
	}
	return true
}

// attempt notes that a session waits by an entry, whatever it waits for. Entries
// that it made at one moment have one token.
func (g *graph) attempt(e Entry) {
	if g.attempts[e.Session] == nil {
		g.attempts[e.Session] = map[int64]bool{}
	}
	g.attempts[e.Session][e.Token] = true
}

// reduce withdraws the sessions that wait for nothing, then those that waited for
// these alone, and so on. The rest can't go on.
func (g *graph) reduce() {
	for _, gates := range g.gates {
		for _, s := range gates {
			g.admit(s)
		}
	}
	waitless := map[int64]bool{}
	for session := range g.on {
		waitless[session] = g.left[session] == 0
	}
	for session := range g.gates {
		waitless[session] = g.left[session] == 0
	}
	g.next = nil
	for session, is := range waitless {
		if is && session != 0 {
			g.next = append(g.next, session)
		}
	}
	for len(g.next) > 0 {
		session := g.next[len(g.next)-1]
		g.next = g.next[:len(g.next)-1]
		for _, n := range g.on[session] {
			g.close(n)
		}
		for _, s := range g.gates[session] {
			s.free += s.has[session]
			delete(s.has, session)
			g.admit(s)
		}
	}
}

// close takes one entry out of the way of a wait.
func (g *graph) close(n int) {
	w := &g.waits[n]
	if w.open--; w.open > 0 {
		return
	}
	if g.left[w.entry.Session]--; g.left[w.entry.Session] == 0 {
		g.next = append(g.next, w.entry.Session)
	}
}

// admit gives what permits there are to those in line.
func (g *graph) admit(s *gate) {
	for ; s.free > 0 && s.passed < len(s.line); s.passed++ {
		session := g.waits[s.line[s.passed]].entry.Session
		s.free--
		if s.has[session]++; s.has[session] == 1 {
			g.gates[session] = append(g.gates[session], s)
		}
		g.close(s.line[s.passed])
	}
}

// step is the one wait by which a circle is followed from a session.
type step struct{ waits, on Entry }

// step chooses a session's step: the first of its waits that is stuck, on who holds
// what it waits for if that one is stuck too, else on the nearest one who is. Who
// holds is whom people know; those between come from patience alone.
func (g *graph) step(session int64) step {
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
			steps[session] = g.step(session)
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
		d.Plain = d.Plain && len(g.attempts[session]) == 1
	}
	return d
}
