package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// span is a claim and the time in which it was certainly held.
type span struct {
	a          *attempt
	claim      Claim
	start, end int64
}

// tokened reports whether the hold's token is that of its znode on this path. A hold of
// several locks has the token of its queues, not of its semaphores. If two holds have no
// lock in common, one transaction may create the entries of both.
func (s span) tokened() bool { return s.claim.Mode != Permit || len(s.a.claims) == 1 }

// spans returns the spans of an attempt. A downgrade splits a span: from the call on, the
// hold is shared.
func (a *attempt) spans() []span {
	var all []span
	start, stop := a.returned, a.end()
	for _, c := range a.claims {
		if a.down.invoked != never && a.down.outcome != Fail && c.Mode == Exclusive && a.down.invoked < stop {
			shared := c
			shared.Mode = Shared
			all = append(all, span{a, c, start, a.down.invoked}, span{a, shared, a.down.invoked, stop})
			continue
		}
		all = append(all, span{a, c, start, stop})
	}
	// If a hold ended before its acquire returned, for example after a pause, it was never
	// certain.
	return slices.DeleteFunc(all, func(s span) bool { return s.end <= s.start })
}

// sweeper checks the spans of one path in the order of their starts.
type sweeper struct {
	path      string
	handedOff bool // one hold may hand its token to the next
	problems  []string
	margins   []time.Duration
	seen      []span // all earlier spans
	active    []span // spans that may still be held
}

func (w *sweeper) problem(format string, args ...any) {
	w.problems = append(w.problems, w.path+": "+fmt.Sprintf(format, args...))
}

// sweep finds conflicting holds at the same time, and tokens that do not grow between
// conflicting holds. It also returns the sorted times between the end of a hold and the
// next conflicting grant. If handedOff is set, a hold may hand its token to the next.
func sweep(attempts []*attempt, handedOff bool) (problems []string, margins []time.Duration) {
	var spans []span
	for _, a := range attempts {
		if a.granted() {
			spans = append(spans, a.spans()...)
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	paths := map[string]*sweeper{}
	var order []*sweeper
	for _, s := range spans {
		w := paths[s.claim.Path]
		if w == nil {
			w = &sweeper{path: s.claim.Path, handedOff: handedOff}
			paths[s.claim.Path], order = w, append(order, w)
		}
		w.next(s)
	}
	for _, w := range order {
		problems, margins = append(problems, w.problems...), append(margins, w.margins...)
	}
	slices.Sort(margins)
	return problems, margins
}

// next adds the span that starts next.
func (w *sweeper) next(s span) {
	// A span that ends when the next one begins does not overlap it.
	w.active = slices.DeleteFunc(w.active, func(o span) bool { return o.end <= s.start })
	permits := map[int]int{s.a.outer: s.claim.Permits} // by outer hold
	for _, o := range w.active {
		if o.a.outer == s.a.outer {
			continue
		}
		if exclude(o.claim, s.claim) {
			w.problem("attempt %d was granted while %d held, %v before its end", s.a.id, o.a.id, time.Duration(o.end-s.start))
		}
		permits[o.a.outer] = o.claim.Permits
	}
	used := 0
	for _, n := range permits {
		used += n
	}
	if s.claim.Mode == Permit && used > s.claim.Of {
		w.problem("with attempt %d, %d permits are held of %d", s.a.id, used, s.claim.Of)
	}
	w.order(s)
	w.seen, w.active = append(w.seen, s), append(w.active, s)
}

// order compares the span with all earlier spans.
func (w *sweeper) order(s span) {
	// The margin is the time since the end of the last conflicting span.
	margin, before := int64(never), false
	for _, o := range w.seen {
		switch {
		case o.a.outer == s.a.outer:
			if o.a.token != s.a.token {
				w.problem("attempt %d has the token %#x inside of %#x", s.a.id, s.a.token, o.a.token)
			}
		case !w.handedOff && o.a.token == s.a.token && s.a.token != 0 && o.tokened() && s.tokened():
			w.problem("attempts %d and %d have one token %#x", o.a.id, s.a.id, s.a.token)
		case !exclude(o.claim, s.claim): // both may hold, in any order
		default:
			if o.a.token > s.a.token {
				w.problem("attempt %d has the token %#x after %#x of %d", s.a.id, s.a.token, o.a.token, o.a.id)
			}
			margin, before = min(margin, s.start-o.end), true
		}
	}
	if before && s.start == s.a.returned && s.a.outer == s.a.id {
		w.margins = append(w.margins, time.Duration(margin))
	}
}

// exclude reports whether two claims on one path can never be held at the same time.
// Permits can, unless their sum is too large.
func exclude(a, b Claim) bool { return a.Mode != b.Mode || a.Mode == Exclusive }
