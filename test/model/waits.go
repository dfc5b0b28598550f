package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// occupied is a time in which another client may have held one of the paths.
type occupied struct{ from, to int64 }

// waits finds acquires that waited for longer than patience with nothing in the way: no
// fault, and no holder of one of their paths. It returns the longest of these waits,
// granted or cancelled, and how many acquires waited when the faults had ended.
//
// A wait without an outcome ends with the last event of the history.
func (g *gathering) waits(events []Event, patience int64) (problems []string, longest time.Duration, waiting int) {
	if g.healed == never {
		return nil, 0, 0
	}
	last := int64(0)
	for _, e := range events {
		last = max(last, e.At)
	}
	for _, a := range g.attempts {
		if a.killed || a.try {
			continue // its client is dead, or it does not wait
		}
		if a.invoked < g.healed && a.returned >= g.healed {
			waiting++
		}
		from, to := max(a.invoked, g.healed), min(a.returned, last)
		if to <= from {
			continue
		}
		idle := idlest(from, to, g.others(a))
		longest = max(longest, time.Duration(idle))
		if idle > patience {
			problems = append(problems, fmt.Sprintf("attempt %d waited for %v with nothing in the way", a.id, time.Duration(idle)))
		}
	}
	return problems, longest, waiting
}

// others returns the times at which other clients held the attempt's paths.
func (g *gathering) others(a *attempt) []occupied {
	var all []occupied
	for _, o := range g.attempts {
		if o.granted() && o.outer != a.outer && touch(a.claims, o.claims) {
			all = append(all, occupied{o.returned, o.gone()})
		}
	}
	return all
}

// gone returns when the hold had ended as far as its own client knew. Patience allows for
// the entries that its session leaves.
func (a *attempt) gone() int64 {
	over := min(a.release.returned, a.lost)
	if a.killed {
		over = min(over, a.limit)
	}
	if a.release.outcome == "" && a.lost == never && !a.killed {
		return never
	}
	return over
}

// idlest returns the longest time between from and to without a holder.
func idlest(from, to int64, there []occupied) int64 {
	slices.SortFunc(there, func(a, b occupied) int { return cmp.Compare(a.from, b.from) })
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
