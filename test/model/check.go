package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Rules configure the check of a history.
type Rules struct {
	Model Model
	// Limit is how long the model may be searched for an order. Zero means 10 s.
	Limit time.Duration
	// Linger is how long a try may still find the entry of an acquire that failed, or of
	// a hold that was lost or whose release was not confirmed. Zero means that tries may
	// be refused without a visible reason.
	Linger time.Duration
	// Kept is set if holds are taken away only by ending sessions. Then a hold that is
	// lost before its deadline, in a session that no operator ended, is a violation.
	Kept bool
	// Patience is how long an acquire may wait with no holder in its way after the last
	// fault. Zero means that waits are not checked.
	Patience time.Duration
	// Floor is the least that must have happened.
	Floor Floor
}

// Floor is the least that a run must have done.
type Floor struct {
	Acquired  int // acquires that were granted
	Waited    int // of these, those that waited for the end of another hold
	Refused   int // tries that found the lock held
	Cancelled int // acquires that failed otherwise
	Lost      int // holds that reported that they were lost
	Unknown   int // operations of unknown outcome
	Lowered   int // downgrades that were done
	Reentered int // acquires inside of a hold
	Expired   int // sessions that an operator ended
	Meddled   int // changes by an operator
	Written   int // writes that the resource applied
	Stale     int // writes that it refused, and that a resource without a fence applies
	Waiting   int // acquires that waited when the last fault had ended
}

// Add adds what another history did.
func (f *Floor) Add(o Floor) {
	f.Acquired += o.Acquired
	f.Waited += o.Waited
	f.Refused += o.Refused
	f.Cancelled += o.Cancelled
	f.Lost += o.Lost
	f.Unknown += o.Unknown
	f.Lowered += o.Lowered
	f.Reentered += o.Reentered
	f.Expired += o.Expired
	f.Meddled += o.Meddled
	f.Written += o.Written
	f.Stale += o.Stale
	f.Waiting += o.Waiting
}

// Below names what is below another floor.
func (f Floor) Below(least Floor) (lacks []string) {
	for _, x := range []struct {
		what      string
		have, min int
	}{
		{"acquired", f.Acquired, least.Acquired},
		{"waited", f.Waited, least.Waited},
		{"refused", f.Refused, least.Refused},
		{"cancelled", f.Cancelled, least.Cancelled},
		{"lost", f.Lost, least.Lost},
		{"of unknown outcome", f.Unknown, least.Unknown},
		{"downgraded", f.Lowered, least.Lowered},
		{"entered again", f.Reentered, least.Reentered},
		{"sessions ended", f.Expired, least.Expired},
		{"taken away by an operator", f.Meddled, least.Meddled},
		{"written", f.Written, least.Written},
		{"stale writes", f.Stale, least.Stale},
		{"waiting at the end of the faults", f.Waiting, least.Waiting},
	} {
		if x.have < x.min {
			lacks = append(lacks, fmt.Sprintf("%d %s, not %d", x.have, x.what, x.min))
		}
	}
	return lacks
}

// Report is the result of a check.
type Report struct {
	// Violations are broken invariants, and whatever makes the result worthless. There
	// must be none.
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
			r.Violations = append(r.Violations, "no record of when the faults were over")
		}
	}
	for _, lack := range r.Done.Below(rules.Floor) {
		r.Violations = append(r.Violations, "too little happened: "+lack)
	}
	r.Violations = append(r.Violations, fencing(g.attempts)...)
	problems, r.Margins = sweep(g.attempts, rules.Model.handedOff)
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

// order lets porcupine search for an order that the model explains. A search that does
// not end in time is a violation.
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

// stuck describes the end of the longest order.
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

// count counts what happened.
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

// follows reports whether the attempt waited for the end of a conflicting hold.
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

// String returns the figures in one line.
func (r *Report) String() string {
	d := r.Done
	return fmt.Sprintf("%s; %d acquired (%d waited, %d again), %d refused, %d cancelled, %d lost, %d unknown, %d downgraded, %d sessions ended, "+
		"%d written, %d stale; %s; longest wait once healed %v", r.Result, d.Acquired, d.Waited, d.Reentered, d.Refused, d.Cancelled, d.Lost,
		d.Unknown, d.Lowered, d.Expired, d.Written, d.Stale, Distribution(r.Margins), r.LongestWait)
}

// Distribution describes sorted margins.
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
