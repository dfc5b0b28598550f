package model

import (
	"fmt"
	"time"
)

// unreasonable finds tries that were refused while no other entry was visible.
//
// An entry may be visible from the call of its acquire until its hold is known to have
// ended. If the acquire failed, or the hold was lost or its release was not confirmed, it
// may be visible for linger longer, and forever if the outcome is unknown.
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
			problems = append(problems, fmt.Sprintf("attempt %d was refused while no other entry was visible", a.id))
		}
	}
	return problems
}

// leaves returns when the entry of the attempt is not visible any more.
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

// lostForNothing finds holds that were lost before their deadline, in a session that no
// operator ended.
func lostForNothing(attempts []*attempt) []string {
	var problems []string
	for _, a := range attempts {
		if a.lost < a.proven && a.limit == never {
			problems = append(problems, fmt.Sprintf("attempt %d was lost %v before its deadline: %s", a.id, time.Duration(a.proven-a.lost), a.why))
		}
	}
	return problems
}
