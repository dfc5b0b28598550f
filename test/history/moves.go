package history

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
	give                    // it is left once
	end                     // it ends by itself, however often it was entered
	lower                   // from exclusive to shared
	maybe                   // an acquire whose outcome nobody knows
)

// String names the move.
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
	// loose says that the hold may be over already: then the move is in vain.
	loose bool
}

// operations turns attempts into the operations that a model must explain.
//
// What failed is left out, since it changed nothing. An acquire of unknown
// outcome stays: if it took the lock, it may have let go of it at any time since,
// so that it constrains nothing, and no model may refuse it.
func operations(attempts []*attempt) []porcupine.Operation {
	var ops []porcupine.Operation
	clients := map[string]int{}
	groups := map[int][]*attempt{}
	for _, a := range attempts {
		if _, known := clients[a.client]; !known {
			clients[a.client] = len(clients)
		}
		groups[a.outer] = append(groups[a.outer], a)
	}
	for _, a := range attempts {
		loose := slices.ContainsFunc(groups[a.outer], (*attempt).loose)
		add := func(kind moveKind, from, to int64, token int64) {
			m := move{kind: kind, hold: a.outer, owner: a.client, claims: a.claims, token: token, loose: loose}
			ops = append(ops, porcupine.Operation{ClientId: clients[a.client], Input: m, Call: from, Return: to})
		}
		switch {
		case a.outcome == Fail:
			continue
		case !a.granted():
			add(maybe, a.invoked, never, 0)
			continue
		case a.outer != a.id:
			add(reenter, a.invoked, a.returned, a.token)
		default:
			add(take, a.invoked, a.returned, a.token)
		}
		// So may a downgrade, and after the hold's end it is in vain: never, that is.
		if a.down.outcome == OK {
			add(lower, a.down.invoked, a.down.returned, a.token)
		} else if a.down.outcome != Fail && a.down.invoked != never {
			add(lower, a.down.invoked, never, a.token)
		}
		// A release that is not confirmed may be done at any time after its call.
		ended := a.release.returned
		if a.release.outcome != OK {
			ended = never
		}
		alone := len(groups[a.outer]) == 1
		if a.release.invoked != never && !(loose && alone) && a.release.outcome != Fail {
			add(give, a.release.invoked, ended, a.token)
		}
		if loose && alone {
			// Whoever ended it, it is over when the release has said so.
			add(end, earliest(groups[a.id]), ended, a.token)
		} else if loose && a.outer == a.id {
			add(end, earliest(groups[a.id]), never, a.token)
		}
	}
	return ops
}

// earliest is the first moment at which a hold may have ended by itself: the
// last one at which any of its entries is certain to have been held.
func earliest(group []*attempt) int64 {
	last := slices.MaxFunc(group, func(a, b *attempt) int { return cmp.Compare(a.end(), b.end()) })
	limit := int64(never)
	for _, a := range group {
		limit = min(limit, a.limit)
	}
	return min(last.end(), limit)
}
