package inspect

import (
	"slices"
	"strconv"

	"github.com/zklock/zklock"
)

// A Deadlock is a cycle of sessions in which each waits for the next.
type Deadlock struct {
	// Cycle begins with the session with the smallest ID.
	Cycle []Link
	// Blocked counts the other sessions that cannot continue before the cycle is broken.
	Blocked int
	// Certain reports whether each session in the cycle waits for one thing. A session that
	// waits for several has several threads or goroutines, and one of them may still
	// release what another session waits for.
	Certain bool
}

// A Link is one session of a cycle. It waits for the next session.
type Link struct {
	// Session is the session of the outermost command if one command runs inside another.
	// The entries have this session too.
	Session int64
	// Holds is what the previous link waits for: an entry of this session that holds the
	// lock, or that is ahead in the queue.
	Holds Entry
	// Waits is the entry of this session that waits, in the queue of the next link's Holds.
	Waits Entry
}

// Deadlocks finds cycles of sessions that wait for each other across several locks. Each
// session that cannot continue because of a cycle is in it, or counts as Blocked by it. The result
// depends only on the sessions, and so does its order.
//
// Deadlocks assumes that a session is one thread, which releases nothing while it waits. It
// ignores a session that waits only for itself: it has several threads, or a bug that
// concerns no other session. It assumes that a semaphore's waiter wants one permit, because
// the number is not stored. So it does not find a waiter that wants more permits than can
// become free.
//
// It counts a zklock run that runs inside another one as part of the outer one: see
// [zklock.Owner].ParentSession.
//
// The locks must be from one moment: see [Unchanged]. Deadlocks takes time in proportion to
// the number of entries.
func Deadlocks(locks []*Lock) []Deadlock {
	g := newGraph(mergeNested(locks))
	g.reduce()
	return g.cycles()
}

// maxNesting limits how many nested runs are followed.
const maxNesting = 16

// mergeNested gives the entries of a command that runs inside another one the session of
// the outermost. Anyone can write an owner's data: mergeNested believes them only if the
// other session exists on the same host.
func mergeNested(locks []*Lock) []*Lock {
	outer, host, said := map[int64]int64{}, map[int64]string{}, map[int64]string{}
	for _, l := range locks {
		for _, e := range l.Entries {
			if e.Session != 0 && e.Owner.Host != "" {
				host[e.Session] = e.Owner.Host
			}
			if e.Owner.ParentSession != "" {
				said[e.Session] = e.Owner.ParentSession
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
			for range maxNesting {
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

// Unchanged returns, from two readings of the same locks, the entries that have the same
// state in both. The second reading must begin after the first has ended. Then all these
// entries existed at the moment between them. That makes a cycle real: locks that are read
// one after another may show a cycle that never existed. If permits of a semaphore were
// acquired or released in between, Unchanged drops its waiters, because a permit was free.
func Unchanged(first, second []*Lock) []*Lock {
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

// wait is an entry that waits.
type wait struct {
	entry Entry
	on    []Entry // entries of other sessions
	open  int     // how many of on still block it; at a gate, 1 until it is admitted
	gate  *gate   // nil except at a semaphore's gate
}

// gate is the queue for a semaphore's permits.
type gate struct {
	free    int           // free permits
	has     map[int64]int // permits by session
	line    []int         // the waits, in order
	passed  int           // how many of line were admitted
	permits []Entry
	ahead   blockers // permits, and the waits in order
}

// blockers are entries that block others. Many sessions wait for the same ones, so the stuck ones
// are found once, after graph.reduce.
type blockers struct {
	entries []Entry
	holders bool // only the holders of entries, without permits
	found   bool
	stuck   []int // indexes of the first stuck entry, and of the first one of another session
}

// graph tells which sessions wait for which.
type graph struct {
	waits    []wait
	of       map[int64][]int   // waits by session
	on       map[int64][]int   // the waits for a session, one for each entry of on
	left     map[int64]int     // number of open waits by session
	gates    map[int64][]*gate // the gates by the sessions that have permits
	allGates []*gate
	attempts map[int64]map[int64]bool // the tokens with which a session waits
	holders  map[string]*blockers     // of exclusive and shared locks, by path
	next     []int64                  // sessions that can continue and were not removed yet
}

// newGraph builds the graph of the locks.
func newGraph(locks []*Lock) *graph {
	g := &graph{
		of: map[int64][]int{}, on: map[int64][]int{}, left: map[int64]int{}, gates: map[int64][]*gate{},
		attempts: map[int64]map[int64]bool{}, holders: map[string]*blockers{},
	}
	for _, l := range locks {
		g.holders[l.Path] = &blockers{entries: l.Entries, holders: true}
		g.queue(l.Entries)
		g.semaphore(l)
	}
	return g
}

// queue adds the waits in a queue of exclusive and shared entries. An exclusive entry waits
// for all entries ahead of it, and a shared one for the exclusive ones. It is enough to add
// those up to the nearest exclusive entry, which waits for the others.
func (g *graph) queue(entries []Entry) {
	downgrading := curatorDowngrade(entries)
	var ahead []Entry // from the last exclusive entry on
	for _, e := range entries {
		switch e.Mode {
		case zklock.Exclusive:
			g.add(e, ahead)
			ahead = []Entry{e}
		case zklock.Shared:
			if len(ahead) > 0 && ahead[0].Mode == zklock.Exclusive && !downgrading(e) {
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
	if len(s.permits) == 0 {
		s.free = max(1, s.free) // also if the size is unknown
	}
	g.allGates = append(g.allGates, s)
	for session := range s.has {
		g.gates[session] = append(g.gates[session], s)
	}
	on := slices.Clone(s.permits)
	for _, e := range l.Entries {
		if e.Mode != zklock.Permit || leased(e.Entry) {
			continue
		}
		// A session with a permit that waits for another one has several threads,
		// or blocks itself.
		if s.has[e.Session] > 0 {
			g.attempt(e)
			continue
		}
		if n := len(g.waits); g.add(e, on) {
			g.waits[n].gate = s
			s.line = append(s.line, n)
		}
		on = append(on, e)
	}
	s.ahead.entries = on
}

// add adds a wait for all entries of on, and reports whether e waits.
func (g *graph) add(e Entry, on []Entry) bool {
	if e.Holder || e.Session == 0 {
		return false
	}
	g.attempt(e)
	w := wait{entry: e, on: on}
	if e.Mode != zklock.Permit {
		// An entry without a session blocks forever, but is in no cycle.
		w.on = slices.DeleteFunc(slices.Clone(on), func(o Entry) bool { return o.Session == e.Session || o.Session == 0 })
	}
	w.open = len(w.on)
	if e.Mode == zklock.Permit {
		w.open = 1 // also for the first waiter, which takes a free permit
	}
	if w.open == 0 {
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

// attempt notes that a session waits with an entry. Entries that one acquire created have
// one token.
func (g *graph) attempt(e Entry) {
	if g.attempts[e.Session] == nil {
		g.attempts[e.Session] = map[int64]bool{}
	}
	g.attempts[e.Session][e.Token] = true
}

// reduce removes the sessions that wait for nothing, then those that waited only for these,
// and so on. The sessions that remain cannot continue.
func (g *graph) reduce() {
	for _, s := range g.allGates {
		g.admit(s)
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

// close removes one entry that blocks a wait.
func (g *graph) close(n int) {
	w := &g.waits[n]
	if w.open--; w.open > 0 {
		return
	}
	if g.left[w.entry.Session]--; g.left[w.entry.Session] == 0 {
		g.next = append(g.next, w.entry.Session)
	}
}

// admit gives the free permits to the first waiters.
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

// step is the wait by which a cycle is followed from a session.
type step struct{ waits, on Entry }

// step chooses a session's step: the first of its waits that is stuck, for the first holder
// that is stuck too, else for the first entry that is. Holders come first because people know
// them.
func (g *graph) step(session int64) step {
	for _, n := range g.of[session] {
		w := &g.waits[n]
		if w.open == 0 {
			continue
		}
		if w.gate != nil {
			if on := g.firstStuck(&w.gate.ahead, len(w.on), session); on != nil {
				return step{w.entry, *on}
			}
			continue
		}
		holders := g.holders[w.entry.Path]
		if on := g.firstStuck(holders, len(holders.entries), session); on != nil {
			return step{w.entry, *on}
		}
		if on := g.firstStuck(&blockers{entries: w.on}, len(w.on), session); on != nil {
			return step{w.entry, *on}
		}
	}
	return step{}
}

// firstStuck returns the first stuck entry of a session other than this one among the first n
// entries of b, or nil.
func (g *graph) firstStuck(b *blockers, n int, session int64) *Entry {
	for i := 0; !b.found && i < len(b.entries) && len(b.stuck) < 2; i++ {
		e := &b.entries[i]
		if b.holders && (!e.Holder || e.Mode == zklock.Permit) {
			continue
		}
		if g.left[e.Session] > 0 && (len(b.stuck) == 0 || b.entries[b.stuck[0]].Session != e.Session) {
			b.stuck = append(b.stuck, i)
		}
	}
	b.found = true
	for _, i := range b.stuck {
		if e := &b.entries[i]; i < n && e.Session != session {
			return e
		}
	}
	return nil
}

// cycles follows the steps of the sessions that cannot continue. Each leads into one cycle, or to
// a session without a step, which waits only for itself or for entries without a session.
func (g *graph) cycles() []Deadlock {
	var stuck []int64
	steps := map[int64]step{}
	for session, open := range g.left {
		if open > 0 {
			stuck = append(stuck, session)
			steps[session] = g.step(session)
		}
	}
	slices.Sort(stuck)
	const followed, none = -1, -2
	// The cycle that a session leads into, from 1. The step of a session without one is to 0.
	into := map[int64]int{0: none}
	var found []Deadlock
	for _, first := range stuck {
		var way []int64
		s := first
		for ; into[s] == 0; s = steps[s].on.Session {
			into[s] = followed
			way = append(way, s)
		}
		n := into[s]
		if n == followed {
			at := slices.Index(way, s)
			found = append(found, g.cycle(way[at:], steps))
			n = len(found)
			found[n-1].Blocked = -len(way[at:])
		}
		for _, session := range way {
			into[session] = n
		}
		if n != none {
			found[n-1].Blocked += len(way)
		}
	}
	return found
}

// cycle describes a cycle of sessions.
func (g *graph) cycle(sessions []int64, steps map[int64]step) Deadlock {
	least := slices.Index(sessions, slices.Min(sessions))
	sessions = append(slices.Clone(sessions[least:]), sessions[:least]...)
	d := Deadlock{Certain: true}
	for i, session := range sessions {
		before := sessions[(i+len(sessions)-1)%len(sessions)]
		d.Cycle = append(d.Cycle, Link{Session: session, Holds: steps[before].on, Waits: steps[session].waits})
		d.Certain = d.Certain && len(g.attempts[session]) == 1
	}
	return d
}
