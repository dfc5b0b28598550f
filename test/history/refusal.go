package history

import (
	"fmt"
	"time"
)

// unreasonable finds tries that were refused while nobody else was there.
//
// Somebody is there from the call of an acquire until its hold is known to be
// over; what failed, was lost or was not confirmed may be seen for linger more,
// and what is unknown for ever.
func unreasonable(attempts []*attempt, linger int64) []string {
	var problems []string
	for _, a := range attempts {
		if !a.try || a.outcome != Fail || !a.locked {
			continue
		}
		reason := false
		for _, o := range attempts {
			reason = reason || o != a && touch(a.claims, o.claims) && o.invoked <= a.returned && o.leaves(linger) >= a.invoked
		}
		if !reason {
			problems = append(problems, fmt.Sprintf("attempt %d was refused by nobody", a.id))
		}
	}
	return problems
}

// leaves is when nothing of the attempt is to be seen any more.
func (a *attempt) leaves(linger int64) int64 {
	switch {
	case a.outcome == Fail:
		return a.returned + linger
	case a.release.outcome == OK:
		return a.release.returned
	case a.lost != never:
		return a.lost + linger
	}
	return never
}

// lostForNothing finds holds that were lost before the deadline that they had
// promised, in a session that nobody ended.
func lostForNothing(attempts []*attempt) []string {
	var problems []string
	for _, a := range attempts {
		if a.lost < a.proven && a.limit == never {
			problems = append(problems, fmt.Sprintf("attempt %d was lost %v before its deadline: %s", a.id, time.Duration(a.proven-a.lost), a.why))
		}
	}
	return problems
}
