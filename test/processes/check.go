package processes

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Verdict is what Check found.
type Verdict struct {
	// Violations are broken promises, and outcomes that are unknown. There must
	// be none.
	Violations []string
	// Acquired counts holds; Cancelled attempts that were given up; Lost holds
	// that ended as such; Refused stale tokens that the resource refused, each of
	// which an unguarded one would have taken; Unconfirmed releases that went on
	// in the background; Killed processes.
	Acquired, Cancelled, Lost, Refused, Unconfirmed, Killed int
	// Margins are the times between the end of a hold and the next Acquire's
	// return, sorted. None is below 0 without a violation.
	Margins []time.Duration
	// LongestWait is the longest time from the end of the faults to the outcome
	// of an attempt that was then under way.
	LongestWait time.Duration
}

// attempt is one Acquire and what followed.
type attempt struct {
	id       string
	invoked  int64
	outcome  int64 // when Acquire returned; 0 while it has not
	token    int64
	held     bool // Acquire has returned a hold
	start    int64
	proven   int64 // until when the hold said that it was held
	release  int64 // when Release was called; 0 if it was not
	released bool  // Release did not say lost
	lost     int64 // when it said lost; 0 if it did not
	over     bool
	refused  bool
}

// process is one life of a process.
type process struct {
	attempts map[int]*attempt
	ended    bool
	killed   int64 // 0 if it was not
}

// checker is a Check under way.
type checker struct {
	verdict Verdict
	procs   map[string]*process
}

// Check judges the events of all processes; those of one process are in the
// order in which it wrote them. healed is when the last fault had ended, and
// what waited then must be granted within wait, or be given up by then.
func Check(events []Event, healed int64, wait time.Duration) *Verdict {
	c := &checker{procs: map[string]*process{}}
	for _, e := range events {
		p := c.procs[e.Proc]
		if p == nil {
			p = &process{attempts: map[int]*attempt{}}
			c.procs[e.Proc] = p
		}
		c.event(p, e)
	}
	var holds []*attempt
	for name, p := range c.procs {
		c.finished(name, p)
		for _, a := range p.attempts {
			c.waited(a, healed, wait)
			if a.held {
				holds = append(holds, a)
			}
		}
	}
	c.tokens(holds)
	c.sweep(holds, c.procs)
	slices.Sort(c.verdict.Violations)
	return &c.verdict
}

func (c *checker) violation(format string, args ...any) {
	c.verdict.Violations = append(c.verdict.Violations, fmt.Sprintf(format, args...))
}

// event takes one event in, and refuses what cannot follow what was before.
func (c *checker) event(p *process, e Event) {
	switch e.Kind {
	case End:
		p.ended = true
		if e.Goroutines > 0 {
			c.violation("%s left %d goroutines behind", e.Proc, e.Goroutines)
		}
		return
	case Killed:
		p.killed = e.At
		c.verdict.Killed++
		return
	}
	id := fmt.Sprintf("%s/%d", e.Proc, e.Attempt)
	a := p.attempts[e.Attempt]
	if e.Kind == Invoke {
		if a != nil {
			c.violation("%s was invoked twice", id)
		}
		p.attempts[e.Attempt] = &attempt{id: id, invoked: e.At}
		return
	}
	if a == nil || a.over || a.held == (e.Kind == Acquired || e.Kind == Cancelled || e.Kind == Failed) {
		c.violation("%s: %q came out of turn %s", id, e.Kind, e.Err)
		return
	}
	if a.held {
		c.holding(a, e)
		return
	}
	a.outcome = e.At
	switch e.Kind {
	case Acquired:
		a.held, a.token, a.start, a.proven = true, e.Token, e.At, e.Until
		c.verdict.Acquired++
	case Cancelled:
		a.over = true
		c.verdict.Cancelled++
	case Failed:
		a.over = true
		c.violation("%s: an acquire failed: %s", id, e.Err)
	}
}

// holding takes in an event of a hold.
func (c *checker) holding(a *attempt, e Event) {
	switch e.Kind {
	case Looked:
		if a.release != 0 {
			c.violation("%s says held after its release", a.id)
		}
		if a.refused {
			// Somebody with a higher token has acted: two hold.
			c.violation("%s says held after its token %#x was refused", a.id, a.token)
		}
		a.proven = max(a.proven, e.At, e.Until)
	case Acted:
	case Refused:
		a.refused = true
		c.verdict.Refused++
	case Releasing:
		a.release = e.At
	case Released, Unconfirmed:
		if a.release == 0 {
			c.violation("%s: %q came out of turn", a.id, e.Kind)
		}
		if e.Kind == Unconfirmed {
			c.verdict.Unconfirmed++
		}
		a.over, a.released = true, true
	case Lost:
		a.over, a.lost = true, e.At
		c.verdict.Lost++
	default:
		c.violation("%s: unknown event %q", a.id, e.Kind)
	}
}

// finished checks how a process ended.
func (c *checker) finished(name string, p *process) {
	if p.killed == 0 && !p.ended {
		c.violation("%s ended, and nobody killed it", name)
	}
	if p.killed != 0 {
		return
	}
	for _, a := range p.attempts {
		if !a.over {
			c.violation("%s has no outcome", a.id)
		}
	}
}

// waited checks that an attempt had its outcome in time once the faults were over.
func (c *checker) waited(a *attempt, healed int64, wait time.Duration) {
	if a.outcome == 0 || a.outcome <= healed {
		return
	}
	d := duration(a.outcome - max(a.invoked, healed))
	c.verdict.LongestWait = max(c.verdict.LongestWait, d)
	if d > wait {
		c.violation("%s waited for %v with nothing in the way", a.id, d)
	}
}

// tokens checks that no two holds have one token.
func (c *checker) tokens(holds []*attempt) {
	seen := map[int64]*attempt{}
	for _, a := range holds {
		if a.token <= 0 {
			c.violation("%s has the token %d", a.id, a.token)
		}
		if b := seen[a.token]; b != nil {
			c.violation("%s and %s have the same token %#x", min(a.id, b.id), max(a.id, b.id), a.token)
		}
		seen[a.token] = a
	}
}

// end is until when the hold is certain to have been held. It is never later
// than the truth: what it makes overlap did overlap.
func (a *attempt) end(killed int64) int64 {
	if a.released {
		// A release that did not say lost was the release of something held.
		return a.release
	}
	end := a.proven
	for _, limit := range []int64{a.lost, a.release, killed} {
		if limit != 0 {
			end = min(end, limit)
		}
	}
	return end
}

// sweep goes through the holds in the order of their grants: no two may overlap,
// and their tokens must grow. A hold that had ended before its Acquire had
// returned, as after a pause, has no place in that order.
func (c *checker) sweep(holds []*attempt, procs map[string]*process) {
	ends := map[*attempt]int64{}
	for _, p := range procs {
		for _, a := range p.attempts {
			ends[a] = a.end(p.killed)
		}
	}
	holds = slices.DeleteFunc(holds, func(a *attempt) bool { return ends[a] <= a.start })
	slices.SortFunc(holds, func(a, b *attempt) int { return cmp.Compare(a.start, b.start) })
	var last *attempt // the one that ends last of those before
	for _, a := range holds {
		if last != nil {
			margin := duration(a.start - ends[last])
			c.verdict.Margins = append(c.verdict.Margins, margin)
			if margin < 0 {
				c.violation("%s was granted while %s held: %v before its end", a.id, last.id, -margin)
			}
			if a.token <= last.token {
				c.violation("%s has the token %#x, after %s had %#x", a.id, a.token, last.id, last.token)
			}
		}
		if last == nil || ends[a] > ends[last] {
			last = a
		}
	}
	slices.Sort(c.verdict.Margins)
}

// String gives the figures in a line.
func (v *Verdict) String() string {
	quantile := func(part float64) time.Duration {
		if len(v.Margins) == 0 {
			return 0
		}
		return v.Margins[int(part*float64(len(v.Margins)-1))]
	}
	return fmt.Sprintf("%d acquired, %d cancelled, %d lost, %d stale tokens refused, %d releases unconfirmed, %d processes killed; "+
		"margin min %v, median %v, 99 %% %v; longest wait once healed %v",
		v.Acquired, v.Cancelled, v.Lost, v.Refused, v.Unconfirmed, v.Killed,
		quantile(0), quantile(0.5), quantile(0.99), v.LongestWait)
}
