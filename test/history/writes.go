package history

import (
	"cmp"
	"fmt"
	"slices"
)

// taken is a write that the resource took.
type taken struct {
	a *attempt
	w write
}

// fencing judges the resource that the locks guard by its answers, and the locks
// by what it refused.
//
// Only exclusive holds have their writes in the order of their tokens, so only
// their paths are looked at, one by one: a write that was taken behind another, as
// the resource itself tells or because it was asked for after the other had been
// answered, must not have a smaller token, or the resource has no fence. A write
// that was refused while its hold was certain to be held says that somebody else
// with a higher token has written: two held.
func fencing(attempts []*attempt) []string {
	var problems []string
	paths := map[string][]taken{}
	for _, a := range attempts {
		for _, w := range a.writes {
			if w.outcome == Fail && a.end() >= w.returned {
				problems = append(problems, fmt.Sprintf("attempt %d was refused its write with the token %#x while it held", a.id, w.token))
			}
			if w.token != a.token {
				problems = append(problems, fmt.Sprintf("attempt %d wrote with the token %#x, not its own", a.id, w.token))
			}
			if w.outcome != OK {
				continue
			}
			for _, c := range a.claims {
				if c.Mode == Exclusive {
					paths[c.Path] = append(paths[c.Path], taken{a, w})
				}
			}
		}
	}
	for path, all := range paths {
		for _, x := range slices.Concat(staleByPlace(all), staleByTime(all)) {
			problems = append(problems, fmt.Sprintf("%s: the resource took the write of attempt %d with the token %#x after a higher one", path, x.a.id, x.w.token))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// staleByPlace are the writes that the resource says it took after a higher token.
func staleByPlace(all []taken) []taken {
	placed := slices.DeleteFunc(slices.Clone(all), func(x taken) bool { return x.w.place == 0 })
	slices.SortFunc(placed, func(x, y taken) int { return cmp.Compare(x.w.place, y.w.place) })
	var stale []taken
	highest := int64(0)
	for _, x := range placed {
		if x.w.token < highest {
			stale = append(stale, x)
		}
		highest = max(highest, x.w.token)
	}
	return stale
}

// staleByTime are the writes that were asked for after a higher token's write had
// been answered.
func staleByTime(all []taken) []taken {
	byReturn, byCall := slices.Clone(all), slices.Clone(all)
	slices.SortFunc(byReturn, func(x, y taken) int { return cmp.Compare(x.w.returned, y.w.returned) })
	slices.SortFunc(byCall, func(x, y taken) int { return cmp.Compare(x.w.invoked, y.w.invoked) })
	var stale []taken
	answered, highest := 0, int64(0)
	for _, x := range byCall {
		for ; answered < len(all) && byReturn[answered].w.returned < x.w.invoked; answered++ {
			highest = max(highest, byReturn[answered].w.token)
		}
		if x.w.token < highest {
			stale = append(stale, x)
		}
	}
	return stale
}
