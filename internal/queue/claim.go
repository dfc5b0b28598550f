package queue

import (
	"cmp"
	"slices"
	"time"
)

// phase is how far a claim has come.
type phase uint8

const (
	parked  phase = iota // waits for a session, or for its time to try again
	working              // its steps are under way
	ready                // nothing is ahead; to be granted when all is proven
	held                 // granted
	done                 // off the list
)

// A claim is one Acquire, and then the hold that came of it. It takes its steps
// one after another: all its queues in one transaction, then for each semaphore
// the gate and, under it, the permits. It is granted when it stands clear at all
// its places; if it loses one of them before, it gives all up and begins anew.
type claim struct {
	id   ID
	spec Spec

	phase   phase
	step    int              // which of its steps is under way
	places  []*place         // of the steps begun, without the gates that it has passed
	retryAt time.Duration    // when to look at it again; 0 for never
	agenda  *agenda          // the core's
	rounds  int              // how often a znode of its was deleted while it waited
	makes   int              // how often in a row parents had to be made
	unmade  map[string]error // why some of them could not be, by their paths

	inquiry *inquiry          // what it waits for before it makes anything
	access  map[string]Access // what that found, by the parents' paths

	retaking bool // its present step has to be taken again
	apart    bool // its next create is not to be joined with others', as the last one was undone

	guards   int   // how many of its guarded writes are not answered
	watching bool  // it was asked to tell of a revocation
	revoked  bool  // it was told of one
	swap     *swap // the downgrade under way
}

const (
	retryPause   = 100 * time.Millisecond
	recheckPause = 30 * time.Second // a lost watch costs at most this
	maxMakes     = 16
)

// retry makes the claim be looked at again at this time, or sooner.
func (cl *claim) retry(at time.Duration) {
	at = max(at, 1) // 0 is never, and may be now where a clock begins
	if cl.retryAt == 0 || at < cl.retryAt {
		cl.retryAt = at
	}
	if a := cl.agenda; a.soonest == 0 || at < a.soonest {
		a.soonest = at
	}
}

// rest makes nothing look at the claim for the time being.
func (cl *claim) rest() {
	if cl.retryAt != 0 && cl.retryAt <= cl.agenda.soonest {
		cl.agenda.old = true
	}
	cl.retryAt = 0
}

// An agenda knows when the first of many claims wants to be looked at, without a
// look at each.
type agenda struct {
	soonest time.Duration // 0: none wants to
	old     bool          // the claim of which that was told rests
}

// at returns when the first of all the claims wants to be looked at, 0 for never.
func (a *agenda) at(all []*claim) time.Duration {
	if a.old {
		*a = agenda{}
		for _, cl := range all {
			if cl.retryAt != 0 && (a.soonest == 0 || cl.retryAt < a.soonest) {
				a.soonest = cl.retryAt
			}
		}
	}
	return a.soonest
}

// nodes returns the claim's znodes, known to be there or not.
func (cl *claim) nodes() []*node {
	var all []*node
	for _, p := range cl.places {
		all = append(all, p.nodes...)
	}
	return all
}

// joins is how many steps join queues, and joined which members the i-th joins.
func (s *Spec) joins() int {
	if s.oneByOne() {
		return len(s.Members)
	}
	return min(1, len(s.Members))
}

func (s *Spec) joined(i int) []Member {
	if s.oneByOne() {
		return s.Members[i : i+1]
	}
	return s.Members
}

func (s *Spec) oneByOne() bool { return s.InOrder }

// steps returns how many transactions the claim needs: behind the queues' there
// are two for each semaphore.
func (s *Spec) steps() int {
	if s.Node != "" {
		return 1
	}
	return s.joins() + 2*len(s.Semaphores)
}

// stand returns the places that the claim's present step asks for.
func (c *Core) stand(cl *claim) (places []*place) {
	s, joins := &cl.spec, cl.spec.joins()
	if s.Node != "" {
		return []*place{{claim: cl, role: fixed, parent: parentOf(s.Node)}}
	}
	if cl.step < joins {
		for _, m := range s.joined(cl.step) {
			places = append(places, &place{claim: cl, parent: m.Path, names: m.Names, kind: m.Kind, writer: m.Writer, beside: m.Beside, delay: s.Delay})
		}
		return places
	}
	i := cl.step - joins
	sem := &s.Semaphores[i/2]
	if i%2 == 0 {
		return []*place{{claim: cl, role: gate, parent: sem.Path + "/locks", sem: sem}}
	}
	return []*place{{claim: cl, role: leases, parent: sem.Path + "/leases", sem: sem}}
}

// clear says that nothing is ahead at a place, and moves on a claim that now
// stands clear at all its places.
func (c *Core) clear(now time.Duration, p *place) {
	cl := p.claim
	p.clear, p.blocker, p.behind = true, "", nil
	c.learn(now, p)
	p.alone = p.kind == Exclusive && p.role != leases
	if cl.phase != working || slices.ContainsFunc(cl.places, func(p *place) bool { return !p.clear }) {
		return
	}
	if p.role == leases {
		c.passGate(now, cl)
	}
	if cl.step+1 < cl.spec.steps() {
		cl.step++
		c.join(now, cl)
		return
	}
	cl.phase = ready
	c.ready = append(c.ready, cl)
	c.dirty = true
}

// proceed picks a claim up where it stands: on a new connection, or when its
// time to try again has come.
func (c *Core) proceed(now time.Duration, cl *claim) {
	switch cl.phase {
	case parked:
		c.join(now, cl)
		return
	case working:
		if cl.retaking {
			c.join(now, cl)
		}
		for _, p := range slices.Clone(cl.places) {
			if cl.phase == working && !p.over {
				c.proceedAt(now, p)
			}
		}
	}
	if cl.phase == done || cl.phase == parked {
		return
	}
	for _, n := range cl.nodes() {
		if n.wantsWatch && !n.watched && n.state == alive {
			c.watchOwn(n)
		}
	}
	if cl.swap != nil {
		c.settleSwap(now, cl)
	}
}

// settle grants what is ready and proven. Everything the connection had brought
// is known by now.
func (c *Core) settle(now time.Duration) {
	if !c.dirty || !c.connected() {
		return
	}
	c.dirty, c.beat.hurry = false, false
	margin := c.session.Timeout / 8
	// In order of arrival, and each once.
	slices.SortFunc(c.ready, func(a, b *claim) int { return cmp.Compare(a.id, b.id) })
	c.ready = slices.DeleteFunc(slices.Compact(c.ready), func(cl *claim) bool {
		if cl.phase != ready {
			return true
		}
		nodes := cl.nodes()
		unproven := slices.ContainsFunc(nodes, func(n *node) bool { return n.unproven })
		if unproven || c.beat.jeopardy || c.deadline.Ahead(now) < margin {
			c.beat.hurry = true
			return false
		}
		c.grant(now, cl, nodes)
		return true
	})
	c.heartbeat(now)
}

// grant makes the claim a hold.
func (c *Core) grant(now time.Duration, cl *claim, nodes []*node) {
	cl.rest()
	cl.phase, cl.access = held, nil
	c.holds++
	for _, n := range nodes {
		if n.wantsWatch && !n.watched {
			c.watchOwn(n) // which the claim was to try again
		}
	}
	if slices.ContainsFunc(nodes, func(n *node) bool { return !n.watched }) {
		c.watchLater(now, cl.id)
	}
	s := Signal{ID: cl.id, Kind: Granted, Session: nodes[0].session, Token: nodes[0].czxid}
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, n.path())
		s.Tokens = append(s.Tokens, n.czxid)
	}
	s.Node = s.Nodes[0]
	if cl.spec.InOrder && cl.spec.steps() > 1 {
		s.Token = 0
	}
	c.signal(s)
	if cl.revoked && cl.watching {
		c.signal(Signal{ID: cl.id, Kind: Revoked})
	}
}
