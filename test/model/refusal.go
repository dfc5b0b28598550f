package model

import (
	"fmt"
	"time"
)

// groundlessRefusals finds tries that were refused while no other entry was visible.
//
// An entry may be visible from the call of its acquire until its hold is known to have
// ended. If the acquire failed or the hold was lost, it may be visible for linger longer.
// If the outcome is unknown, it may be visible forever.
func groundlessRefusals(attempts []*attempt, linger int64) []string {
	var problems []string
	for _, a := range attempts {
		if !a.try || a.outcome != Fail || !a.locked {
			continue
		}
		reason := false
		for _, o := range attempts {
			reason = reason || o != a && sharePath(a.claims, o.claims) && o.invoked <= a.returned && o.visibleUntil(linger) >= a.invoked
		}
		if !reason {
			problems = append(problems, fmt.Sprintf("attempt %d was refused while no other entry was visible", a.id))
		}
	}
	return problems
}

// visibleUntil returns the last time at which the entry of the attempt may be visible.
func (a *attempt) visibleUntil(linger int64) int64 {
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

// earlyLosses finds holds that were lost before their deadline, in a session that no
// operator ended.
func earlyLosses(attempts []*attempt) []string {
	var problems []string
	for _, a := range attempts {
		if a.lost < a.proven && a.limit == never {
			problems = append(problems, fmt.Sprintf("attempt %d was lost %v before its deadline: %s", a.id, time.Duration(a.proven-a.lost), a.why))
		}
	}
	return problems
}
