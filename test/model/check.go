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
	// Limit is the longest search for an order. Zero means 10 s.
	Limit time.Duration
	// Linger is how long an entry may stay visible after its acquire failed, its hold was
	// lost, or its release was not confirmed. Zero disables the check of refused tries.
	Linger time.Duration
	// NoEarlyLoss is set if an operator takes a hold away only by ending its session. A hold
	// that is lost before its deadline, in a session that no operator ended, is a violation.
	NoEarlyLoss bool
	// Patience is how long an acquire may wait after the last fault while no other client
	// holds the lock. Zero disables the check of waits.
	Patience time.Duration
	// Floor is the minimum of each count.
	Floor Floor
}

// Floor counts operations. As a rule, it is the minimum of each count.
type Floor struct {
	Acquired   int // acquires that were granted
	Waited     int // of these, acquires that waited for the end of another hold
	Refused    int // tries that found the lock held
	Cancelled  int // acquires that failed otherwise
	Lost       int // holds that reported their loss
	Unknown    int // operations of unknown outcome
	Downgraded int // downgrades that were done
	Reentered  int // acquires inside a hold
	Expired    int // sessions that an operator ended
	Tampered   int // changes by an operator
	Written    int // writes that the resource applied
	Stale      int // writes that the resource refused because it had seen a higher token
	Waiting    int // acquires that were waiting when the last fault ended
}

// Add adds the counts of another history.
func (f *Floor) Add(o Floor) {
	f.Acquired += o.Acquired
	f.Waited += o.Waited
	f.Refused += o.Refused
	f.Cancelled += o.Cancelled
	f.Lost += o.Lost
	f.Unknown += o.Unknown
	f.Downgraded += o.Downgraded
	f.Reentered += o.Reentered
	f.Expired += o.Expired
	f.Tampered += o.Tampered
	f.Written += o.Written
	f.Stale += o.Stale
	f.Waiting += o.Waiting
}

// Below returns a description of each count that is below least.
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
		{"downgraded", f.Downgraded, least.Downgraded},
		{"entered again", f.Reentered, least.Reentered},
		{"sessions ended", f.Expired, least.Expired},
		{"taken away by an operator", f.Tampered, least.Tampered},
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
	// Violations are broken invariants, and defects that make the result worthless.
	Violations []string
	// Done counts what happened.
	Done Floor
	// Result is the result of porcupine.
	Result porcupine.CheckResult
	// Margins are the sorted times between the end of a hold and the start of the next
	// conflicting one. A negative margin is also a violation.
	Margins []time.Duration
	// LongestWait is the longest wait without a holder after the last fault.
	LongestWait time.Duration
}

// Check checks a history against the rules.
func Check(h *History, rules Rules) *Report {
	r := &Report{}
	g := collect(h.Events)
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
		r.Violations = append(r.Violations, groundlessRefusals(g.attempts, int64(rules.Linger))...)
	}
	if rules.NoEarlyLoss {
		r.Violations = append(r.Violations, earlyLosses(g.attempts)...)
	}
	r.order(g, rules)
	return r
}

// order lets porcupine search for an order that the model permits. A search that exceeds
// its limit is a violation.
func (r *Report) order(g *collector, rules Rules) {
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

// stuck describes the end of the longest partial order.
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

// count counts the operations.
func (r *Report) count(g *collector) {
	r.Done.Expired, r.Done.Tampered = len(g.expires), len(g.order)
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
			r.Done.Downgraded++
		}
	}
}

// follows reports whether the attempt waited for the end of a conflicting hold.
func (a *attempt) follows(o *attempt) bool {
	return o.granted() && o.outer != a.outer && conflict(a, o) && o.returned < a.invoked && o.end() > a.invoked && o.end() <= a.returned
}

// conflict reports whether two attempts have a path in common that they cannot share.
func conflict(a, b *attempt) bool {
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
		d.Unknown, d.Downgraded, d.Expired, d.Written, d.Stale, Distribution(r.Margins), r.LongestWait)
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
