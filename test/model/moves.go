package model

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"
)

// moveKind is what a move does to a lock.
type moveKind int

const (
	acquire   moveKind = iota // the hold begins
	reenter                   // the hold is entered once more
	release                   // one level is released
	end                       // it ends by itself, with all its levels
	downgrade                 // from exclusive to shared
	unknown                   // an acquire of unknown outcome
)

// String returns the name of the move.
func (k moveKind) String() string {
	return [...]string{"acquire", "reenter", "release", "end", "downgrade", "unknown"}[k]
}

// move is an operation of a model. It takes effect at one moment.
type move struct {
	kind   moveKind
	hold   int    // the attempt that took it
	owner  string // the client
	claims []Claim
	token  int64
	// uncertain is set if the hold may have ended already. Then the move has no effect. It
	// is not set for the move end, which the search would otherwise try everywhere.
	uncertain bool
}

// operations returns the operations of attempts for porcupine.
//
// Failed operations are omitted because they changed nothing. An acquire of unknown outcome
// stays. If it acquired the lock, it may have released it at any time. So it restricts no
// other operation, and no model refuses it. It comes after all other operations, where it
// does not slow the search.
func operations(attempts []*attempt) []porcupine.Operation {
	list := &operationList{clients: map[string]int{}, groups: map[int][]*attempt{}}
	for _, a := range attempts {
		if _, known := list.clients[a.client]; !known {
			list.clients[a.client] = len(list.clients)
		}
		if a.granted() {
			list.groups[a.outer] = append(list.groups[a.outer], a)
		}
	}
	for _, a := range attempts {
		group := list.groups[a.outer]
		switch {
		case a.outcome == Fail:
		case !a.granted():
			list.add(a, unknown, never-1, never)
		case slices.ContainsFunc(group, (*attempt).uncertain):
			if a.outer == a.id {
				list.addUncertain(a, group)
			}
		default:
			list.addReleased(a)
		}
	}
	return list.ops
}

// operationList is the list of operations.
type operationList struct {
	ops       []porcupine.Operation
	clients   map[string]int
	groups    map[int][]*attempt // the granted attempts of each hold, by the outer attempt
	uncertain bool               // whether added operations are uncertain
}

func (l *operationList) add(a *attempt, kind moveKind, from, to int64) {
	m := move{kind: kind, hold: a.outer, owner: a.client, claims: a.claims, token: a.token, uncertain: l.uncertain}
	l.ops = append(l.ops, porcupine.Operation{ClientId: l.clients[a.client], Input: m, Call: from, Return: to})
}

// addReleased adds the operations of a hold, or of one level, that only its releases ended.
func (l *operationList) addReleased(a *attempt) {
	l.uncertain = false
	if a.outer != a.id {
		l.add(a, reenter, a.invoked, a.returned)
	} else {
		l.add(a, acquire, a.invoked, a.returned)
	}
	l.addDowngrade(a)
	// The server may apply an unconfirmed release at any time after the call.
	if a.release.invoked != never && a.release.outcome != Fail {
		ended := a.release.returned
		if a.release.outcome != OK {
			ended = never
		}
		l.add(a, release, a.release.invoked, ended)
	}
}

// addUncertain adds the operations of a hold that may have ended without a release. It may
// end at any time between [earliest] and the confirmation of the last release.
func (l *operationList) addUncertain(a *attempt, group []*attempt) {
	l.uncertain = false
	l.add(a, acquire, a.invoked, a.returned)
	ended := int64(0)
	for _, level := range group {
		if level.release.outcome != OK {
			ended = never
			break
		}
		ended = max(ended, level.release.returned)
	}
	l.add(a, end, earliest(group), ended)
	// The hold may end before the other operations.
	l.uncertain = true
	for _, level := range group {
		if level != a {
			l.add(level, reenter, level.invoked, level.returned)
		}
		l.addDowngrade(level)
	}
}

// addDowngrade adds the downgrade, if any. A downgrade of unknown outcome is applied at
// some time, possibly without effect after the end of the hold.
func (l *operationList) addDowngrade(a *attempt) {
	switch {
	case a.down.outcome == OK:
		l.add(a, downgrade, a.down.invoked, a.down.returned)
	case a.down.outcome != Fail && a.down.invoked != never:
		l.add(a, downgrade, a.down.invoked, never)
	}
}

// earliest returns the first moment at which a hold may have ended without a release: the
// last moment at which one of its levels was certainly held.
func earliest(group []*attempt) int64 {
	last := slices.MaxFunc(group, func(a, b *attempt) int { return cmp.Compare(a.end(), b.end()) })
	limit := int64(never)
	for _, a := range group {
		limit = min(limit, a.limit)
	}
	return min(last.end(), limit)
}
