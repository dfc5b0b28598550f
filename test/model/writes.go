package model

import (
	"cmp"
	"fmt"
	"slices"
)

// taken is a write that the resource applied.
type taken struct {
	a *attempt
	w write
}

// fencing checks the resource that the locks guard by its answers, and the locks by what
// the resource refused.
//
// Only exclusive holds have their writes in the order of their tokens, so only
// their paths are checked, one by one. A write that was applied after another, by the
// order of the resource or because it was sent after the answer to the other, must not
// have a smaller token, or the resource has no fence. A write that was refused while its
// hold was certain to be held shows that another client with a higher token has written:
// two held.
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

// staleByPlace returns the writes that the resource applied after a higher token, by its
// own order.
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

// staleByTime returns the writes that were sent after the answer to a write with a higher
// token.
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
