package model

import (
	"fmt"
	"math"
	"slices"
)

// never is the return time of an operation that need not return.
const never = math.MaxInt64

// attempt is an acquire and its hold, gathered from events.
type attempt struct {
	id, outer int
	client    string
	claims    []Claim
	try       bool

	invoked  int64
	returned int64
	outcome  Kind // of the acquire; empty while there is none
	locked   bool
	token    int64
	session  int64

	proven int64  // the latest deadline of the hold
	lost   int64  // when the hold reported that it is lost; never if it did not
	limit  int64  // from when on an operator, or a kill, may have ended the hold
	why    string // why it is lost
	killed bool   // the client was killed before the attempt was over

	down, release call
	writes        []write
}

// write is one write to the resource that the lock guards.
type write struct {
	call
	token int64
	place int64 // in the resource's order; 0 if it is not known
}

// call is an operation on a hold.
type call struct {
	invoked, returned int64 // never while it has not been, or has not returned
	outcome           Kind  // empty while there is none
}

// gathering turns events into attempts, and reports those that are out of order.
type gathering struct {
	attempts []*attempt
	byID     map[int]*attempt
	expires  map[int]int64 // ids of session ends, and when they were invoked
	meddling map[int]*meddle
	order    []*meddle // the same, in the order of their start
	healed   int64     // when the last fault had ended; never if that is not recorded
	problems []string
}

// meddle is an operator's change of some paths.
type meddle struct {
	call
	claims []Claim
}

func (g *gathering) problem(format string, args ...any) {
	g.problems = append(g.problems, fmt.Sprintf(format, args...))
}

// gather reads all events in the order of the history.
func gather(events []Event) *gathering {
	g := &gathering{byID: map[int]*attempt{}, expires: map[int]int64{}, meddling: map[int]*meddle{}, healed: never}
	for _, e := range events {
		switch e.Op {
		case Expire:
			g.expire(e)
		case Kill:
			g.kill(e)
		case Meddle:
			g.meddle(e)
		case Heal:
			g.healed = e.At
		case Acquire:
			g.acquire(e)
		case Look, Downgrade, Release, Write:
			if a := g.byID[e.ID]; a == nil || a.outcome != OK {
				g.problem("%s of attempt %d, which holds nothing", e.Op, e.ID)
			} else {
				g.holding(a, e)
			}
		default:
			g.problem("unknown operation %q", e.Op)
		}
	}
	// This is done last: an operator may end a session before the client has its hold's reply.
	for _, e := range events {
		if e.Op != Expire || e.Kind != Invoke {
			continue
		}
		for _, a := range g.attempts {
			if a.outcome == OK && a.session == e.Session && a.done() > e.At {
				a.limit = min(a.limit, max(e.At, a.invoked))
			}
		}
	}
	g.meddled()
	g.unfinished()
	return g
}

// meddle reads an event of an operator that changes paths.
func (g *gathering) meddle(e Event) {
	m := g.meddling[e.ID]
	switch {
	case e.Kind == Invoke && m == nil && len(e.Claims) > 0:
		m = &meddle{call: call{invoked: e.At, returned: never}, claims: e.Claims}
		g.meddling[e.ID], g.order = m, append(g.order, m)
	case e.Kind == Invoke || m == nil || m.outcome != "":
		g.problem("the meddling %d: %q is out of order", e.ID, e.Kind)
	case e.Kind == OK:
		m.outcome, m.returned = e.Kind, e.At
	default: // it may still happen
		m.outcome = e.Kind
	}
}

// meddled limits every attempt that existed while an operator changed one of its paths:
// its hold may have ended then.
func (g *gathering) meddled() {
	for _, m := range g.order {
		for _, a := range g.attempts {
			if touch(a.claims, m.claims) && a.invoked < m.returned && a.done() > m.invoked {
				a.limit = min(a.limit, max(m.invoked, a.invoked))
			}
		}
	}
	// An inner hold is no more certain than its outer one.
	for _, a := range g.attempts {
		if outer := g.byID[a.outer]; outer != nil {
			a.limit = min(a.limit, outer.limit)
		}
	}
}

// touch reports whether two lists of claims have a path in common.
func touch(a, b []Claim) bool {
	return slices.ContainsFunc(a, func(c Claim) bool {
		return slices.ContainsFunc(b, func(d Claim) bool { return c.Path == d.Path })
	})
}

// done returns when the attempt's hold is known to have ended.
func (a *attempt) done() int64 {
	if a.release.outcome == OK {
		return a.release.returned
	}
	return never
}

func (g *gathering) expire(e Event) {
	_, there := g.expires[e.ID]
	if there != (e.Kind != Invoke) {
		g.problem("the end of session %#x: %q is out of order", e.Session, e.Kind)
	}
	g.expires[e.ID] = e.At
}

func (g *gathering) kill(e Event) {
	for _, a := range g.attempts {
		if a.client == e.Client && a.release.outcome == "" && a.outcome != Fail && a.outcome != Info {
			a.killed = true
			a.limit = min(a.limit, e.At)
		}
	}
}

func (g *gathering) acquire(e Event) {
	a := g.byID[e.ID]
	switch {
	case e.Kind == Invoke && a == nil && e.ID > 0:
		// Until something else is known, no operation returns and no hold ends.
		a = &attempt{id: e.ID, outer: e.ID, client: e.Client, claims: e.Claims, try: e.Try, invoked: e.At,
			returned: never, lost: never, limit: never,
			down: call{invoked: never, returned: never}, release: call{invoked: never, returned: never}}
		g.byID[e.ID], g.attempts = a, append(g.attempts, a)
		if outer := g.byID[e.Outer]; outer != nil {
			a.outer = outer.outer
		} else if e.Outer != 0 {
			g.problem("attempt %d enters %d again, which does not exist", e.ID, e.Outer)
		}
		g.claims(a)
	// A process that records an event after its kill was not dead yet.
	case e.Kind == Invoke || a == nil || a.outcome != "" || a.killed:
		g.problem("attempt %d: the acquire's %q is out of order", e.ID, e.Kind)
	default:
		a.outcome, a.returned, a.locked = e.Kind, e.At, e.Locked
		a.token, a.session, a.proven = e.Token, e.Session, e.Until
		if e.Kind == OK && e.Token <= 0 && (e.Token < 0 || !a.onlyPermits()) {
			g.problem("attempt %d was granted with the token %d", a.id, e.Token)
		}
	}
}

// onlyPermits reports whether the attempt claims only permits, so that its hold needs no
// token.
func (a *attempt) onlyPermits() bool {
	return !slices.ContainsFunc(a.claims, func(c Claim) bool { return c.Mode != Permit })
}

// claims checks the claims of an attempt.
func (g *gathering) claims(a *attempt) {
	paths := map[string]bool{}
	for _, c := range a.claims {
		if paths[c.Path] {
			g.problem("attempt %d claims %s twice", a.id, c.Path)
		}
		paths[c.Path] = true
		if c.Mode == Permit && (c.Permits < 1 || c.Permits > c.Of) {
			g.problem("attempt %d claims %d permits of %d", a.id, c.Permits, c.Of)
		}
	}
	if len(a.claims) == 0 {
		g.problem("attempt %d claims nothing", a.id)
	}
}

func (g *gathering) holding(a *attempt, e Event) {
	switch e.Op {
	case Look:
		g.look(a, e)
		return
	case Write:
		g.write(a, e)
		return
	}
	c := &a.release
	if e.Op == Downgrade {
		c = &a.down
	}
	switch {
	case e.Kind == Invoke && c.invoked == never:
		c.invoked = e.At
	case e.Kind != Invoke && c.invoked != never && c.outcome == "":
		c.outcome, c.returned = e.Kind, e.At
	default:
		g.problem("attempt %d: the %s's %q is out of order", a.id, e.Op, e.Kind)
	}
	if e.Op == Release && e.Kind == Fail {
		a.lose(e)
	}
	if e.Op == Release && e.Kind == OK && a.lost != never {
		g.problem("attempt %d was lost, and its release says that it was held", a.id)
	}
}

// look reads a check of a hold.
func (g *gathering) look(a *attempt, e Event) {
	switch {
	// A hold that has ended does not come back.
	case e.Kind == OK && a.release.invoked != never:
		g.problem("attempt %d says that it is held after its release", a.id)
	case e.Kind == OK && a.lost != never:
		g.problem("attempt %d is held again after it was lost", a.id)
	case e.Kind == OK:
		a.proven = max(a.proven, e.Until)
	default:
		a.lose(e)
	}
}

// write reads a write to the resource, or its answer.
func (g *gathering) write(a *attempt, e Event) {
	var last *write
	if n := len(a.writes); n > 0 && a.writes[n-1].outcome == "" {
		last = &a.writes[n-1]
	}
	switch {
	case e.Kind == Invoke && last == nil && a.release.invoked == never:
		a.writes = append(a.writes, write{call: call{invoked: e.At, returned: never}, token: e.Token})
	case e.Kind != Invoke && last != nil && last.token == e.Token:
		last.outcome, last.returned, last.place = e.Kind, e.At, e.Place
	default:
		g.problem("attempt %d: the write's %q is out of order", a.id, e.Kind)
	}
}

// lose reads that the hold is lost. The first report counts.
func (a *attempt) lose(e Event) {
	if a.lost == never {
		a.lost, a.why = e.At, e.Err
	}
}

// unfinished reports operations without an outcome whose client was not killed.
func (g *gathering) unfinished() {
	for _, a := range g.attempts {
		if a.killed || a.outcome == Fail || a.outcome == Info {
			continue
		}
		// Otherwise a run that stops early would pass.
		switch {
		case a.outcome == "":
			g.problem("attempt %d has no outcome", a.id)
		case a.release.invoked == never && a.lost == never:
			g.problem("attempt %d is neither released nor lost", a.id)
		case a.release.invoked != never && a.release.outcome == "", a.down.invoked != never && a.down.outcome == "":
			g.problem("attempt %d: a call has no outcome", a.id)
		}
	}
}

// end returns until when the hold is certain to have been held. It is never later than
// the real end.
func (a *attempt) end() int64 {
	if a.release.outcome == OK || a.release.outcome == Info {
		// A release that does not report a loss releases a lock that is held.
		return min(a.release.invoked, a.lost, a.limit)
	}
	// It was not released: it is certain until its own deadline.
	return min(a.proven, a.release.invoked, a.lost, a.limit)
}

// loose reports whether the hold may have ended by itself.
func (a *attempt) loose() bool { return a.lost != never || a.limit != never }

// granted reports whether the acquire has returned a hold.
func (a *attempt) granted() bool { return a.outcome == OK }
