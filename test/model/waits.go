package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// interval is a time in which another client may have held a path.
type interval struct{ from, to int64 }

// waits finds acquires that waited longer than patience after the last fault while no
// other client held one of their paths. It returns the longest of these waits, granted or
// cancelled, and the number of acquires that were waiting when the faults ended.
//
// A wait without an outcome ends with the last event of the history.
func (g *collector) waits(events []Event, patience int64) (problems []string, longest time.Duration, waiting int) {
	if g.healed == never {
		return nil, 0, 0
	}
	last := int64(0)
	for _, e := range events {
		last = max(last, e.At)
	}
	for _, a := range g.attempts {
		if a.killed || a.try {
			continue
		}
		if a.invoked < g.healed && a.returned >= g.healed {
			waiting++
		}
		from, to := max(a.invoked, g.healed), min(a.returned, last)
		if to <= from {
			continue
		}
		idle := longestGap(from, to, g.otherHolds(a))
		longest = max(longest, time.Duration(idle))
		if idle > patience {
			problems = append(problems, fmt.Sprintf("attempt %d waited for %v with nothing in the way", a.id, time.Duration(idle)))
		}
	}
	return problems, longest, waiting
}

// otherHolds returns the times at which other clients held the attempt's paths.
func (g *collector) otherHolds(a *attempt) []interval {
	var all []interval
	for _, o := range g.attempts {
		if o.granted() && o.outer != a.outer && sharePath(a.claims, o.claims) {
			all = append(all, interval{o.returned, o.endKnown()})
		}
	}
	return all
}

// endKnown returns when the client knew that its hold had ended. Its entry may exist longer;
// patience includes that time.
func (a *attempt) endKnown() int64 {
	over := min(a.release.returned, a.lost)
	if a.killed {
		over = min(over, a.limit)
	}
	if a.release.outcome == "" && a.lost == never && !a.killed {
		return never
	}
	return over
}

// longestGap returns the longest time between from and to without a holder.
func longestGap(from, to int64, there []interval) int64 {
	slices.SortFunc(there, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	longest, free := int64(0), from
	for _, o := range there {
		if o.from >= to {
			break
		}
		longest = max(longest, o.from-free)
		free = max(free, o.to)
	}
	return max(longest, to-free)
}
