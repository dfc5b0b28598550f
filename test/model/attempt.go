package model

import (
	"fmt"
	"math"
	"slices"
)

// never is the return time of an operation that need not return.
const never = math.MaxInt64

// attempt is an acquire and its hold, collected from events.
type attempt struct {
	id, outer int
	client    string
	claims    []Claim
	try       bool

	invoked  int64
	returned int64
	outcome  Kind // of the acquire; empty without an outcome
	locked   bool
	token    int64
	session  int64

	proven int64  // the latest deadline of the hold
	lost   int64  // when the hold reported its loss; never if it did not
	limit  int64  // the earliest time at which an operator or a kill may have ended the hold
	why    string // the reason for the loss
	killed bool   // the client was killed before the attempt was over

	down, release call
	writes        []write
}

// write is one write to the resource that the lock guards.
type write struct {
	call
	token int64
	place int64 // in the resource's order; 0 if unknown
}

// call is an operation on a hold.
type call struct {
	invoked, returned int64 // never until the call starts or returns
	outcome           Kind  // empty without an outcome
}

// collector builds attempts from events and reports events that are out of order.
type collector struct {
	attempts   []*attempt
	byID       map[int]*attempt
	expires    map[int]int64 // ids of session ends, and when they were invoked
	tamperings map[int]*tampering
	order      []*tampering // the same, in the order of their start
	healed     int64        // when the last fault had ended; never if that is not recorded
	problems   []string
}

// tampering is an operator's change of the claims' paths.
type tampering struct {
	call
	claims []Claim
}

func (g *collector) problem(format string, args ...any) {
	g.problems = append(g.problems, fmt.Sprintf(format, args...))
}

// collect reads all events in the order of the history.
func collect(events []Event) *collector {
	g := &collector{byID: map[int]*attempt{}, expires: map[int]int64{}, tamperings: map[int]*tampering{}, healed: never}
	for _, e := range events {
		switch e.Op {
		case Expire:
			g.expire(e)
		case Kill:
			g.kill(e)
		case Tamper:
			g.tamper(e)
		case Heal:
			g.healed = e.At
		case Acquire:
			g.acquire(e)
		case Observe, Downgrade, Release, Write:
			if a := g.byID[e.ID]; a == nil || a.outcome != OK {
				g.problem("%s of attempt %d, which holds nothing", e.Op, e.ID)
			} else {
				g.holding(a, e)
			}
		default:
			g.problem("unknown operation %q", e.Op)
		}
	}
	// An operator may end a session before the client receives the reply to its acquire.
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
	g.limitTampered()
	g.unfinished()
	return g
}

// tamper reads an operator's change of paths.
func (g *collector) tamper(e Event) {
	m := g.tamperings[e.ID]
	switch {
	case e.Kind == Invoke && m == nil && len(e.Claims) > 0:
		m = &tampering{call: call{invoked: e.At, returned: never}, claims: e.Claims}
		g.tamperings[e.ID], g.order = m, append(g.order, m)
	case e.Kind == Invoke || m == nil || m.outcome != "":
		g.problem("the tampering %d: %q is out of order", e.ID, e.Kind)
	case e.Kind == OK:
		m.outcome, m.returned = e.Kind, e.At
	default: // the change may still happen
		m.outcome = e.Kind
	}
}

// limitTampered limits each attempt that existed while an operator changed one of its
// paths. Its hold may have ended then.
func (g *collector) limitTampered() {
	for _, m := range g.order {
		for _, a := range g.attempts {
			if sharePath(a.claims, m.claims) && a.invoked < m.returned && a.done() > m.invoked {
				a.limit = min(a.limit, max(m.invoked, a.invoked))
			}
		}
	}
	// If the outer hold may have ended, the inner hold may have ended too.
	for _, a := range g.attempts {
		if outer := g.byID[a.outer]; outer != nil {
			a.limit = min(a.limit, outer.limit)
		}
	}
}

// sharePath reports whether two lists of claims have a path in common.
func sharePath(a, b []Claim) bool {
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

func (g *collector) expire(e Event) {
	_, there := g.expires[e.ID]
	if there != (e.Kind != Invoke) {
		g.problem("the end of session %#x: %q is out of order", e.Session, e.Kind)
	}
	g.expires[e.ID] = e.At
}

func (g *collector) kill(e Event) {
	for _, a := range g.attempts {
		if a.client == e.Client && a.release.outcome == "" && a.outcome != Fail && a.outcome != Info {
			a.killed = true
			a.limit = min(a.limit, e.At)
		}
	}
}

func (g *collector) acquire(e Event) {
	a := g.byID[e.ID]
	switch {
	case e.Kind == Invoke && a == nil && e.ID > 0:
		// By default, no operation returns and no hold ends.
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

// onlyPermits reports whether the attempt claims only permits. Then its hold needs no
// token.
func (a *attempt) onlyPermits() bool {
	return !slices.ContainsFunc(a.claims, func(c Claim) bool { return c.Mode != Permit })
}

// claims validates the claims of an attempt.
func (g *collector) claims(a *attempt) {
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

func (g *collector) holding(a *attempt, e Event) {
	switch e.Op {
	case Observe:
		g.observe(a, e)
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

// observe reads a client's check of its hold.
func (g *collector) observe(a *attempt, e Event) {
	switch {
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
func (g *collector) write(a *attempt, e Event) {
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

// lose records the loss of the hold. Only the first report counts.
func (a *attempt) lose(e Event) {
	if a.lost == never {
		a.lost, a.why = e.At, e.Err
	}
}

// unfinished reports operations without an outcome, unless their client was killed.
func (g *collector) unfinished() {
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

// end returns the time until which the client certainly held the lock. The real end is not
// earlier.
func (a *attempt) end() int64 {
	if a.release.outcome == OK || a.release.outcome == Info {
		// If the release reports no loss, the lock was held until then.
		return min(a.release.invoked, a.lost, a.limit)
	}
	// Without a release, the hold is certain until its deadline.
	return min(a.proven, a.release.invoked, a.lost, a.limit)
}

// uncertain reports whether the hold may have ended without a release.
func (a *attempt) uncertain() bool { return a.lost != never || a.limit != never }

// granted reports whether the acquire has returned a hold.
func (a *attempt) granted() bool { return a.outcome == OK }
