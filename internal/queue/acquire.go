package queue

import (
	"cmp"
	"slices"
	"time"
)

// phase is the stage that an acquire has reached.
type phase uint8

const (
	parked  phase = iota // waits for a session, for its retry, or in the backlog
	working              // its steps are in progress
	ready                // nothing is ahead; granted when its znodes and the deadline are proven
	held                 // granted
	done                 // off the list
)

// An acquire is one call of Acquire, and then the hold that it becomes. It takes its
// steps in order: all its queues in one transaction, then for each semaphore the gate
// and, while it holds the gate, the permits. It is granted when all its positions are
// clear. If it loses one of them before, it leaves all of them and starts again.
type acquire struct {
	id   ID
	spec Spec

	phase     phase
	step      int              // which of its steps is under way
	positions []*position      // of the steps begun, without gates that it has left
	retryAt   time.Duration    // when to check it again; 0 for never
	agenda    *agenda          // the core's
	rounds    int              // how often another client deleted one of its znodes while it waited
	makes     int              // how often in a row it had to create parents
	unmade    map[string]error // the error for each parent that it could not create, by path

	inquiry *inquiry          // reads that must be answered before it creates anything
	access  map[string]Access // the result of the inquiry, by the parents' paths

	retryingStep bool // its current step is to be repeated
	apart        bool // its next create is not batched, because the last one was undone
	counts       bool // its next create counts in the backlog

	watchPlanned bool // watches on its znodes are planned; see [Core.watchLater]

	guards   int         // its guarded writes without an answer
	watching bool        // it reports release requests
	revoked  bool        // a release request was seen
	request  []byte      // what that request says; see requestDetails
	swap     *swap       // the downgrade in progress
	update   *dataUpdate // the SetData in progress
}

const (
	retryPause   = 100 * time.Millisecond
	recheckPause = 30 * time.Second // a lost watch delays a waiter by about this, or less
	maxMakes     = 16
	maxDelay     = 1 << 62 // 146 years: a longer lock-delay would end beyond what a time.Duration holds
)

// retry schedules the next check of the acquire at this time, or earlier.
func (acq *acquire) retry(at time.Duration) {
	at = max(at, 1) // 0 means never, but a clock may start at 0
	if acq.retryAt == 0 || at < acq.retryAt {
		acq.retryAt = at
	}
	if a := acq.agenda; a.soonest == 0 || at < a.soonest {
		a.soonest = at
	}
}

// cancelRetry cancels the scheduled check.
func (acq *acquire) cancelRetry() {
	if acq.retryAt != 0 && acq.retryAt <= acq.agenda.soonest {
		acq.agenda.old = true
	}
	acq.retryAt = 0
}

// An agenda holds the earliest scheduled check of all acquires, so that the core need
// not visit each of them.
type agenda struct {
	soonest time.Duration // 0: none is scheduled
	old     bool          // the earliest check was canceled: compute it again
}

// at returns the earliest scheduled check of all acquires, 0 for never.
func (a *agenda) at(all []*acquire) time.Duration {
	if a.old {
		*a = agenda{}
		for _, acq := range all {
			if acq.retryAt != 0 && (a.soonest == 0 || acq.retryAt < a.soonest) {
				a.soonest = acq.retryAt
			}
		}
	}
	return a.soonest
}

// nodes returns the acquire's znodes in any state.
func (acq *acquire) nodes() []*node {
	var all []*node
	for _, p := range acq.positions {
		all = append(all, p.nodes...)
	}
	return all
}

// queueSteps returns how many steps enqueue at members.
func (s *Spec) queueSteps() int {
	if s.oneByOne() {
		return len(s.Members)
	}
	return min(1, len(s.Members))
}

// queueMembers returns the members at which the i-th step enqueues.
func (s *Spec) queueMembers(i int) []Member {
	if s.oneByOne() {
		return s.Members[i : i+1]
	}
	return s.Members
}

func (s *Spec) oneByOne() bool { return s.InOrder }

// steps returns how many transactions the acquire needs: those of the members, then two
// for each semaphore.
func (s *Spec) steps() int {
	if s.Node != "" {
		return 1
	}
	return s.queueSteps() + 2*len(s.Semaphores)
}

// newPositions returns the positions of the acquire's current step.
func (c *Core) newPositions(acq *acquire) (positions []*position) {
	s, queueSteps := &acq.spec, acq.spec.queueSteps()
	if s.Node != "" {
		return []*position{{acquire: acq, role: fixed, parent: parentOf(s.Node)}}
	}
	if acq.step < queueSteps {
		for _, m := range s.queueMembers(acq.step) {
			positions = append(positions, &position{acquire: acq, parent: m.Path, names: m.Names, form: m.form(), delay: min(s.Delay, maxDelay)})
		}
		return positions
	}
	i := acq.step - queueSteps
	sem := &s.Semaphores[i/2]
	if i%2 == 0 {
		return []*position{{acquire: acq, role: gate, parent: GatePath(sem.Path), sem: sem}}
	}
	return []*position{{acquire: acq, role: leases, parent: LeasesPath(sem.Path), sem: sem}}
}

// clear records that nothing blocks a position. If all positions of the acquire are
// clear, it takes the next step or becomes ready.
func (c *Core) clear(now time.Duration, p *position) {
	acq := p.acquire
	c.block(p, blocker{})
	c.quitSizeWatch(p)
	p.clearance, p.predecessor = cleared, nil
	if p.kind() == Exclusive && p.role != leases {
		p.clearance, p.ahead, p.hidden = clearedAlone, nil, 0
	}
	if acq.phase != working || slices.ContainsFunc(acq.positions, func(p *position) bool { return p.clearance == notCleared }) {
		return
	}
	if p.role == leases {
		c.passGate(now, acq)
	}
	if acq.step+1 < acq.spec.steps() {
		acq.step++
		c.enqueue(now, acq)
		return
	}
	acq.phase = ready
	c.ready = append(c.ready, acq)
	c.dirty = true
}

// proceed resumes an acquire on a new connection or at its scheduled check.
func (c *Core) proceed(now time.Duration, acq *acquire) {
	switch acq.phase {
	case parked:
		c.start(now, acq)
		return
	case working:
		if acq.retryingStep {
			c.enqueue(now, acq)
		}
		for _, p := range slices.Clone(acq.positions) {
			if acq.phase == working && p.membership == present {
				c.proceedAt(now, p)
			}
		}
	}
	if acq.phase == done || acq.phase == parked {
		return
	}
	for _, n := range acq.nodes() {
		if n.watch == ownWanted && n.state == alive {
			c.watchOwn(n)
		}
	}
	c.noteAgain(acq)
	if acq.swap != nil {
		c.advanceSwap(now, acq)
	}
	if acq.update != nil {
		c.sendUpdate(acq)
	}
}

// grantReady grants the acquires that are ready and proven. The caller has delivered
// everything that the connection had brought.
func (c *Core) grantReady(now time.Duration) {
	if !c.dirty || !c.connected() {
		return
	}
	c.dirty, c.beat.hurry = false, false
	margin := c.session.Timeout / 8
	// In order of arrival, without duplicates.
	slices.SortFunc(c.ready, func(a, b *acquire) int { return cmp.Compare(a.id, b.id) })
	c.ready = slices.DeleteFunc(slices.Compact(c.ready), func(acq *acquire) bool {
		if acq.phase != ready {
			return true
		}
		nodes := acq.nodes()
		unproven := slices.ContainsFunc(nodes, func(n *node) bool { return n.doubted != 0 })
		if unproven || c.beat.jeopardy || c.deadline.Ahead(now) < margin {
			c.beat.hurry = true
			return false
		}
		c.grant(now, acq, nodes)
		return true
	})
	c.heartbeat(now)
}

// grant turns the acquire into a hold.
func (c *Core) grant(now time.Duration, acq *acquire, nodes []*node) {
	acq.cancelRetry()
	acq.phase, acq.access = held, nil
	c.holds++
	for _, n := range nodes {
		if n.watch == ownWanted {
			c.watchOwn(n) // an earlier attempt failed
		}
	}
	if slices.ContainsFunc(nodes, func(n *node) bool { return !n.watch.requested() }) {
		c.watchLater(now, acq)
	}
	s := Signal{ID: acq.id, Kind: Granted, Session: nodes[0].session, Token: nodes[0].czxid}
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, n.path())
		s.Tokens = append(s.Tokens, n.czxid)
	}
	s.Node = s.Nodes[0]
	if acq.spec.InOrder && acq.spec.steps() > 1 {
		s.Token = 0
	}
	c.signal(s)
	if acq.revoked && acq.watching {
		c.signal(Signal{ID: acq.id, Kind: Revoked})
	}
}
