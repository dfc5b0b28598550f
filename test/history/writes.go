package history

import (
	"cmp"
	"fmt"
	"slices"
)

// fencing judges the resource that the locks guard by its answers, and the locks
// by what it refused.
//
// Only exclusive holds have their writes in the order of their tokens, so only
// their paths are looked at: path by path, a write that was taken after another
// had been answered must not have a smaller token, or the resource has no fence.
// A write that was refused while its hold was certain to be held says that
// somebody else with a higher token has written: two held.
func fencing(attempts []*attempt) []string {
	type taken struct {
		a *attempt
		w write
	}
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
		slices.SortFunc(all, func(x, y taken) int { return cmp.Compare(x.w.returned, y.w.returned) })
		// The highest token of what was answered before each question was asked.
		byCall := slices.Clone(all)
		slices.SortFunc(byCall, func(x, y taken) int { return cmp.Compare(x.w.invoked, y.w.invoked) })
		answered, highest := 0, int64(0)
		for _, x := range byCall {
			for ; answered < len(all) && all[answered].w.returned < x.w.invoked; answered++ {
				highest = max(highest, all[answered].w.token)
			}
			if x.w.token < highest {
				problems = append(problems, fmt.Sprintf("%s: the resource took the write of attempt %d with the token %#x after %#x", path, x.a.id, x.w.token, highest))
			}
		}
	}
	slices.Sort(problems)
	return problems
}
