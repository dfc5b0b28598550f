package model

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"
)

// moveKind is what a move does to a lock.
type moveKind int

const (
	take    moveKind = iota // the hold begins
	reenter                 // the hold is entered once more
	give                    // one level is released
	end                     // it ends by itself, with all its levels
	lower                   // from exclusive to shared
	maybe                   // an acquire of unknown outcome
)

// String returns the name of the move.
func (k moveKind) String() string {
	return [...]string{"take", "reenter", "give", "end", "lower", "maybe"}[k]
}

// move is an operation as the models see it: what happened at one moment.
type move struct {
	kind   moveKind
	hold   int    // the attempt that took it
	owner  string // the client
	claims []Claim
	token  int64
	// loose is set if the hold may have ended already, so that the move has no effect.
	// It is not set for the end itself, which would otherwise be tried everywhere.
	loose bool
}

// operations turns attempts into the operations that a model must explain.
//
// Operations that failed are left out, because they changed nothing. An acquire of
// unknown outcome stays: if it acquired the lock, it may have released it at any time
// since, so that it constrains nothing, and no model may refuse it. It comes after all
// other operations, where it costs the search nothing.
func operations(attempts []*attempt) []porcupine.Operation {
	list := &listing{clients: map[string]int{}, groups: map[int][]*attempt{}}
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
			list.add(a, maybe, never-1, never)
		case slices.ContainsFunc(group, (*attempt).loose):
			if a.outer == a.id {
				list.fragile(a, group)
			}
		default:
			list.lasting(a)
		}
	}
	return list.ops
}

// listing is the list of operations.
type listing struct {
	ops     []porcupine.Operation
	clients map[string]int
	groups  map[int][]*attempt // the granted attempts of each hold, by the outer one
	loose   bool               // of what is added
}

func (l *listing) add(a *attempt, kind moveKind, from, to int64) {
	m := move{kind: kind, hold: a.outer, owner: a.client, claims: a.claims, token: a.token, loose: l.loose}
	l.ops = append(l.ops, porcupine.Operation{ClientId: l.clients[a.client], Input: m, Call: from, Return: to})
}

// lasting adds the operations of a hold, or of one level of it, that only its releases
// ended.
func (l *listing) lasting(a *attempt) {
	l.loose = false
	if a.outer != a.id {
		l.add(a, reenter, a.invoked, a.returned)
	} else {
		l.add(a, take, a.invoked, a.returned)
	}
	l.lowering(a)
	// A release that is not confirmed may be applied at any time after its call.
	if a.release.invoked != never && a.release.outcome != Fail {
		ended := a.release.returned
		if a.release.outcome != OK {
			ended = never
		}
		l.add(a, give, a.release.invoked, ended)
	}
}

// fragile adds the operations of a hold that may have ended by itself. Its end is
// pending from the last moment at which any of its levels is certain to have been held,
// until the last release has confirmed it.
func (l *listing) fragile(a *attempt, group []*attempt) {
	l.loose = false
	l.add(a, take, a.invoked, a.returned)
	ended := int64(0)
	for _, level := range group {
		if level.release.outcome != OK {
			ended = never
			break
		}
		ended = max(ended, level.release.returned)
	}
	l.add(a, end, earliest(group), ended)
	// Operations on it may come too late.
	l.loose = true
	for _, level := range group {
		if level != a {
			l.add(level, reenter, level.invoked, level.returned)
		}
		l.lowering(level)
	}
}

// lowering adds the downgrade, if there was one. A downgrade of unknown outcome is
// applied at some time; after the hold's end it has no effect.
func (l *listing) lowering(a *attempt) {
	switch {
	case a.down.outcome == OK:
		l.add(a, lower, a.down.invoked, a.down.returned)
	case a.down.outcome != Fail && a.down.invoked != never:
		l.add(a, lower, a.down.invoked, never)
	}
}

// earliest returns the first moment at which a hold may have ended by itself: the last
// one at which any of its levels is certain to have been held.
func earliest(group []*attempt) int64 {
	last := slices.MaxFunc(group, func(a, b *attempt) int { return cmp.Compare(a.end(), b.end()) })
	limit := int64(never)
	for _, a := range group {
		limit = min(limit, a.limit)
	}
	return min(last.end(), limit)
}
