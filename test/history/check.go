package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Rules are how a history is judged.
type Rules struct {
	Model Model
	// Limit is how long the model may be searched for an order. Zero means 10 s.
	Limit time.Duration
	// Linger is how long, after an acquire failed or a hold was lost or not
	// confirmed to be released, a try may still find what it left. Zero means
	// that tries may find the lock taken for no visible reason.
	Linger time.Duration
	// Kept says that nobody takes away what is held but by ending sessions: a hold
	// that is lost before its deadline, in a session that nobody ended, is then a
	// violation.
	Kept bool
	// Patience is how long, once the history says that no fault is left, an acquire
	// may wait with nobody in its way. Zero means that waits are not judged.
	Patience time.Duration
	// Floor is what must have happened for the history to show anything.
	Floor Floor
}

// Floor is the least that a run must have done.
type Floor struct {
	Acquired  int // acquires that were granted
	Waited    int // of these, those that were granted after another's end while they waited
	Refused   int // tries that found the lock taken
	Cancelled int // acquires that failed otherwise
	Lost      int // holds that said that they were lost
	Unknown   int // operations of unknown outcome
	Lowered   int // downgrades that were done
	Reentered int // acquires inside of a hold
	Expired   int // sessions that an operator ended
	Meddled   int // times that an operator took something away
	Written   int // writes that the resource took
	Stale     int // writes that it refused: each of them one that a resource without a fence takes
	Waiting   int // acquires that waited when the last fault was over
}

// Report is a verdict.
type Report struct {
	// Violations are broken promises and whatever makes the verdict worthless.
	// There must be none.
	Violations []string
	// Done is what happened.
	Done Floor
	// Result is what porcupine said.
	Result porcupine.CheckResult
	// Margins are the times between the end of a hold and the start of the next
	// that conflicts with it, sorted. None is below 0 without a violation.
	Margins []time.Duration
	// LongestWait is the longest wait with nothing in the way after the last fault.
	LongestWait time.Duration
}

// Check judges a history.
func Check(h *History, rules Rules) *Report {
	r := &Report{}
	g := gather(h.Events)
	r.Violations = append(r.Violations, g.problems...)
	r.count(g)
	problems, longest, waiting := g.waits(h.Events, int64(rules.Patience))
	r.LongestWait, r.Done.Waiting = longest, waiting
	if rules.Patience > 0 {
		r.Violations = append(r.Violations, problems...)
		if g.healed == never {
			r.Violations = append(r.Violations, "nobody says when the faults were over")
		}
	}
	r.floor(rules.Floor)
	r.Violations = append(r.Violations, fencing(g.attempts)...)
	problems, r.Margins = sweep(g.attempts)
	r.Violations = append(r.Violations, problems...)
	if rules.Linger > 0 {
		r.Violations = append(r.Violations, unreasonable(g.attempts, int64(rules.Linger))...)
	}
	if rules.Kept {
		r.Violations = append(r.Violations, lostForNothing(g.attempts)...)
	}
	r.order(g, rules)
	return r
}

// order has porcupine look for an order that the model explains. Not to know is
// not to be right.
func (r *Report) order(g *gathering, rules Rules) {
	limit := rules.Limit
	if limit == 0 {
		limit = 10 * time.Second
	}
	ops := operations(g.attempts)
	result, info := porcupine.CheckOperationsVerbose(rules.Model.porcupine(), ops, limit)
	r.Result = result
	if result == porcupine.Ok {
		return
	}
	r.Violations = append(r.Violations, fmt.Sprintf("%s: no order explains the history (%s)%s", rules.Model.Name, result, stuck(info)))
}

// stuck tells how far the longest order went.
func stuck(info porcupine.LinearizationInfo) string {
	var b strings.Builder
	for _, partials := range info.PartialLinearizationsOperations() {
		if len(partials) == 0 {
			continue
		}
		longest := slices.MaxFunc(partials, func(a, b []porcupine.Operation) int { return len(a) - len(b) })
		for _, op := range longest[max(0, len(longest)-3):] {
			fmt.Fprintf(&b, "; the longest goes to %v", op.Input)
		}
	}
	return b.String()
}

// count says what happened.
func (r *Report) count(g *gathering) {
	r.Done.Expired, r.Done.Meddled = len(g.expires), len(g.order)
	for _, a := range g.attempts {
		for _, c := range []call{a.down, a.release} {
			if c.invoked != never && (c.outcome == Info || c.outcome == "") {
				r.Done.Unknown++
			}
		}
		for _, w := range a.writes {
			switch w.outcome {
			case OK:
				r.Done.Written++
			case Fail:
				r.Done.Stale++
			default:
				r.Done.Unknown++
			}
		}
		switch {
		case a.outcome == Fail && a.locked:
			r.Done.Refused++
		case a.outcome == Fail:
			r.Done.Cancelled++
		case !a.granted():
			r.Done.Unknown++
		case a.outer != a.id:
			r.Done.Reentered++
		default:
			r.Done.Acquired++
			if slices.ContainsFunc(g.attempts, a.follows) {
				r.Done.Waited++
			}
		}
		if a.granted() && a.outer == a.id && a.lost != never {
			r.Done.Lost++
		}
		if a.down.outcome == OK {
			r.Done.Lowered++
		}
	}
}

// follows reports whether the attempt was granted when another's hold, which it
// conflicts with and which lasted at its call, had ended.
func (a *attempt) follows(o *attempt) bool {
	return o.granted() && o.outer != a.outer && meet(a, o) && o.returned < a.invoked && o.end() > a.invoked && o.end() <= a.returned
}

// meet reports whether two attempts have a path in common that they cannot share.
func meet(a, b *attempt) bool {
	for _, c := range a.claims {
		for _, d := range b.claims {
			if c.Path == d.Path && (exclude(c, d) || c.Mode == Permit) {
				return true
			}
		}
	}
	return false
}

// floor complains of too little.
func (r *Report) floor(f Floor) {
	for _, x := range []struct {
		what      string
		have, min int
	}{
		{"acquired", r.Done.Acquired, f.Acquired},
		{"waited", r.Done.Waited, f.Waited},
		{"refused", r.Done.Refused, f.Refused},
		{"cancelled", r.Done.Cancelled, f.Cancelled},
		{"lost", r.Done.Lost, f.Lost},
		{"of unknown outcome", r.Done.Unknown, f.Unknown},
		{"downgraded", r.Done.Lowered, f.Lowered},
		{"entered again", r.Done.Reentered, f.Reentered},
		{"sessions ended", r.Done.Expired, f.Expired},
		{"taken away by an operator", r.Done.Meddled, f.Meddled},
		{"written", r.Done.Written, f.Written},
		{"stale writes", r.Done.Stale, f.Stale},
		{"waiting at the end of the faults", r.Done.Waiting, f.Waiting},
	} {
		if x.have < x.min {
			r.Violations = append(r.Violations, fmt.Sprintf("too little happened: %d %s, not %d", x.have, x.what, x.min))
		}
	}
}

// String gives the figures in a line.
func (r *Report) String() string {
	d := r.Done
	return fmt.Sprintf("%s; %d acquired (%d waited, %d again), %d refused, %d cancelled, %d lost, %d unknown, %d downgraded, %d sessions ended, "+
		"%d written, %d stale; %s; longest wait once healed %v", r.Result, d.Acquired, d.Waited, d.Reentered, d.Refused, d.Cancelled, d.Lost,
		d.Unknown, d.Lowered, d.Expired, d.Written, d.Stale, Distribution(r.Margins), r.LongestWait)
}

// Distribution tells how sorted margins are spread.
func Distribution(margins []time.Duration) string {
	if len(margins) == 0 {
		return "no margins"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d margins", len(margins))
	for _, q := range []struct {
		name string
		part float64
	}{{"min", 0}, {"1 %", 0.01}, {"10 %", 0.1}, {"median", 0.5}, {"90 %", 0.9}, {"99 %", 0.99}, {"max", 1}} {
		fmt.Fprintf(&b, ", %s %v", q.name, margins[int(q.part*float64(len(margins)-1))])
	}
	return b.String()
}
