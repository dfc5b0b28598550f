package model

import (
	"cmp"
	"fmt"
	"slices"
)

// appliedWrite is a write that the resource applied.
type appliedWrite struct {
	a *attempt
	w write
}

// fencing checks the guarded resource and the locks by the results of writes.
//
// Only exclusive holds write in the order of their tokens, so fencing checks only their
// paths. The resource must not apply a write after another write with a higher token. The
// resource's own order shows this, or that the first write was sent after the answer to the
// second. If the resource refused a write while its hold was certain, another client with a
// higher token has written: two clients held the lock.
func fencing(attempts []*attempt) []string {
	var problems []string
	paths := map[string][]appliedWrite{}
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
					paths[c.Path] = append(paths[c.Path], appliedWrite{a, w})
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

// staleByPlace returns the writes that follow a higher token in the resource's order.
func staleByPlace(all []appliedWrite) []appliedWrite {
	placed := slices.DeleteFunc(slices.Clone(all), func(x appliedWrite) bool { return x.w.place == 0 })
	slices.SortFunc(placed, func(x, y appliedWrite) int { return cmp.Compare(x.w.place, y.w.place) })
	var stale []appliedWrite
	highest := int64(0)
	for _, x := range placed {
		if x.w.token < highest {
			stale = append(stale, x)
		}
		highest = max(highest, x.w.token)
	}
	return stale
}

// staleByTime returns the writes that the client sent after the answer to a write with a
// higher token.
func staleByTime(all []appliedWrite) []appliedWrite {
	byReturn, byCall := slices.Clone(all), slices.Clone(all)
	slices.SortFunc(byReturn, func(x, y appliedWrite) int { return cmp.Compare(x.w.returned, y.w.returned) })
	slices.SortFunc(byCall, func(x, y appliedWrite) int { return cmp.Compare(x.w.invoked, y.w.invoked) })
	var stale []appliedWrite
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
