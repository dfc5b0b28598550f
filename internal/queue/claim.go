package queue

import (
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
	step    int           // which of its steps is under way
	places  []*place      // of the steps begun, without the gates that it has passed
	retryAt time.Duration // when to look at it again; 0 for never
	rounds  int           // how often a znode of its was deleted while it waited
	makes   int           // how often in a row parents had to be made
	makeErr error         // why a parent could not be made

	retaking bool // its present step has to be taken again

	token    int64 // of the hold
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
	if cl.retryAt == 0 || at < cl.retryAt {
		cl.retryAt = at
	}
}

// nodes returns the claim's znodes, known to be there or not.
func (cl *claim) nodes() []*node {
	var all []*node
	for _, p := range cl.places {
		all = append(all, p.nodes...)
	}
	return all
}

// steps returns how many transactions the claim needs.
func (s *Spec) steps() int {
	n := 2 * len(s.Semaphores)
	switch {
	case s.Node != "":
		n++
	case s.InOrder:
		n += len(s.Members)
	case len(s.Members) > 0:
		n++
	}
	return n
}

// stand returns the places that the claim's present step asks for.
func (c *Core) stand(cl *claim) []*place {
	s, i := &cl.spec, cl.step
	if s.Node != "" {
		return []*place{{claim: cl, role: fixed, parent: parentOf(s.Node)}}
	}
	members := s.Members
	if s.InOrder && i < len(members) {
		members = members[i : i+1]
		i = 0
	} else if s.InOrder {
		i -= len(members)
		members = nil
	} else if len(members) > 0 && i > 0 {
		i--
		members = nil
	}
	var places []*place
	for j := range members {
		m := &members[j]
		places = append(places, &place{claim: cl, parent: m.Path, names: m.Names, kind: m.Kind, writer: m.Writer, beside: m.Beside, delay: s.Delay})
	}
	if len(places) > 0 {
		return places
	}
	sem := &s.Semaphores[i/2]
	if i%2 == 0 {
		return []*place{{claim: cl, role: gate, parent: sem.Path + "/locks", sem: sem}}
	}
	return []*place{{claim: cl, role: leases, parent: sem.Path + "/leases", sem: sem}}
}

// join takes the claim's present step: it asks for the znodes of its places and
// for the listings that show who is ahead, in one go: the server carries a
// session's requests out in order.
func (c *Core) join(now time.Duration, cl *claim) {
	cl.phase, cl.retaking = working, false
	places := c.stand(cl)
	cl.places = append(cl.places, places...)
	var creates []Creation
	var nodes []*node
	for _, p := range places {
		creates, nodes = c.ask(p, creates, nodes)
	}
	c.send(Request{Kind: Create, Creates: creates}, func(now time.Duration, r Reply) {
		c.created(now, nodes, r)
	})
	for _, p := range places {
		c.look(p)
	}
}

// ask adds what a place wants to be made to a create.
func (c *Core) ask(p *place, creates []Creation, nodes []*node) ([]Creation, []*node) {
	cl := p.claim
	add := func(n *node) {
		n.owner, n.place, n.session = cl, p, c.session.Session
		data := cl.spec.Data
		if n.named == byData {
			data = withID(data, n.id)
		}
		sequential := n.named != forever && !n.fixed
		if !sequential {
			n.name = n.prefix
		}
		creates = append(creates, Creation{Path: n.parent + "/" + n.prefix, Data: data, Sequential: sequential, Persistent: n.named == forever})
		nodes = append(nodes, n)
	}
	guid := c.cfg.GUID()
	switch p.role {
	case fixed:
		n := &node{parent: p.parent, prefix: baseOf(cl.spec.Node), named: byData, fixed: true, id: FormatGUID(guid)}
		p.nodes = append(p.nodes, n)
		add(n)
		return creates, nodes
	case leases:
		for i := range p.sem.Permits {
			if i > 0 {
				guid = c.cfg.GUID()
			}
			p.nodes = append(p.nodes, &node{parent: p.parent, prefix: lease(guid)})
		}
	default:
		for _, name := range p.names.Ask(guid, p.kind, p.writer) {
			n := &node{parent: p.parent, prefix: name, id: FormatGUID(guid)}
			if p.names.Layout == Custom {
				n.named = byData
			}
			p.nodes = append(p.nodes, n)
		}
	}
	for _, n := range p.nodes {
		add(n)
	}
	if p.delay > 0 {
		p.record = &node{parent: Held(p.parent), prefix: p.nodes[0].prefix, named: forever}
		add(p.record)
	}
	return creates, nodes
}

// created takes a create's outcome, which is the same for all of its znodes. The
// listings' answers, right behind it, move the claim on.
func (c *Core) created(now time.Duration, nodes []*node, r Reply) {
	if nodes[0].state != creating {
		c.strayed(now, nodes, r)
		return
	}
	cl := nodes[0].owner
	switch r.Code {
	case OK:
		for i, n := range nodes {
			n.made(r, i)
		}
		c.answered(r)
		if cl == nil {
			c.disposeAll(now, nodes)
			return
		}
		cl.makes, cl.makeErr = 0, nil
		for _, n := range nodes {
			if n.named == byData && !n.fixed {
				// A check of its name does not tell it from one that was made anew
				// after the parent was: only a watch and the czxid do.
				c.watchOwn(n)
			}
		}
		if err := c.inspectOwn(cl, nodes, r); err != nil {
			c.fail(now, cl, err)
		}
		return
	case Unknown:
		for _, n := range nodes {
			n.state = unknown
		}
		switch {
		case cl == nil:
			c.disposeAll(now, nodes)
		case nodes[0].fixed: // its name tells whose it is, so it may be kept
		default:
			c.retake(now, cl)
		}
		return
	}
	c.notMade(now, cl, nodes, r)
}

// notMade takes the outcome of a create that surely made nothing. With a fixed
// name an earlier one may have, of which only a Get can tell.
func (c *Core) notMade(now time.Duration, cl *claim, nodes []*node, r Reply) {
	perhaps := nodes[0].fixed && r.Code != NoNode && r.Code != SessionOver
	for _, n := range nodes {
		switch {
		case perhaps && cl == nil:
			n.state = unknown
			c.dispose(now, n)
		case perhaps:
			n.state = unknown
		case cl == nil:
			c.finish(n, nil)
		default:
			n.state = absent
		}
	}
	switch {
	case cl == nil:
	case r.Code == NoNode:
		c.makeParents(now, cl, nodes)
	case perhaps && r.Code == NodeExists:
		nodes[0].tried = r.Conn // the answer behind it tells whose it is
	case perhaps && r.Code == NotApplied:
		cl.retry(now + retryPause)
	case r.Code == NotApplied, r.Code == SessionOver:
		c.retake(now, cl)
	default:
		c.fail(now, cl, r.Err)
	}
}

// retake gives up the places of the claim's present step, whose create was not
// done or may not have been, and takes the step again with the next connection or
// in a moment. It keeps those where it stands clear: a gate, or its queues while
// it is about semaphores.
func (c *Core) retake(now time.Duration, cl *claim) {
	kept := slices.DeleteFunc(slices.Clone(cl.places), func(p *place) bool { return !p.clear })
	left := slices.DeleteFunc(cl.places, func(p *place) bool { return p.clear })
	c.abandon(now, left, nil, &parting{}, true)
	cl.places, cl.retryAt = kept, 0
	if len(kept) == 0 {
		cl.phase, cl.step = parked, 0
	}
	cl.retaking = len(kept) > 0
	cl.retry(now + retryPause)
}

// strayed takes the outcome of a create whose session was over before it came.
// The goroutine that was to send it may have stood still until the next session
// had begun: what was made there is nobody's, and would block the lock for as
// long as that session lives.
func (c *Core) strayed(now time.Duration, nodes []*node, r Reply) {
	if r.Code != OK && r.Code != Unknown {
		return
	}
	for i, n := range nodes {
		if r.Code == OK {
			n.made(r, i)
		} else {
			n.state = unknown
		}
		n.owner, n.place, n.parting = nil, nil, nil
		n.session = c.session.Session
		if !slices.Contains(c.doomed, n) {
			c.doomed = append(c.doomed, n)
		}
	}
	c.disposeAll(now, nodes)
}

// inspectOwn looks at what the server made: fail closed on what can't be.
func (c *Core) inspectOwn(cl *claim, nodes []*node, r Reply) error {
	for _, n := range nodes {
		if n.session != c.session.Session || len(nodes) == 1 && r.Owner != n.session {
			return ErrOwner
		}
		if n.named == forever || n.fixed {
			continue
		}
		e, class := n.place.names.Parse(n.name)
		switch {
		case class != Contender || e.Seq >= SequenceLimit:
			return ErrExhausted
		case e.Seq >= SequenceWarning:
			c.signal(Signal{ID: cl.id, Kind: NearLimit, Token: e.Seq})
		}
	}
	return nil
}

// clear says that nothing is ahead at a place, and moves on a claim that now
// stands clear at all its places.
func (c *Core) clear(now time.Duration, p *place) {
	cl := p.claim
	p.clear, p.blocker = true, ""
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
	for _, cl := range c.claims {
		if cl.phase != ready {
			continue
		}
		nodes := cl.nodes()
		unproven := slices.ContainsFunc(nodes, func(n *node) bool { return n.unproven })
		if unproven || c.beat.jeopardy || c.deadline.Ahead(now) < margin {
			c.beat.hurry = true
			continue
		}
		c.grant(cl, nodes)
	}
	c.heartbeat(now)
}

// grant makes the claim a hold.
func (c *Core) grant(cl *claim, nodes []*node) {
	cl.phase, cl.retryAt = held, 0
	s := Signal{ID: cl.id, Kind: Granted, Session: nodes[0].session, Token: nodes[0].czxid}
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, n.path())
		s.Tokens = append(s.Tokens, n.czxid)
	}
	s.Node = s.Nodes[0]
	if cl.spec.InOrder && cl.spec.steps() > 1 {
		s.Token = 0
	}
	cl.token = s.Token
	c.signal(s)
	if cl.revoked && cl.watching {
		c.signal(Signal{ID: cl.id, Kind: Revoked})
	}
}

// gone says that a znode was deleted by somebody else.
func (c *Core) gone(now time.Duration, n *node) {
	if n.state == absent {
		return
	}
	cl := n.owner
	if cl == nil {
		c.finish(n, nil)
		return
	}
	n.state = absent
	if cl.phase == held {
		c.lose(now, cl, ErrGone)
		return
	}
	c.park(now, cl)
	cl.rounds++
	if cl.rounds <= 2 && c.connected() {
		c.join(now, cl)
	} else {
		cl.retry(now + retryPause)
	}
}

// park gives up all the claim's znodes, and makes it begin anew with the next
// connection or retry.
func (c *Core) park(now time.Duration, cl *claim) {
	c.vacate(now, cl, &parting{}, true)
	cl.phase, cl.step, cl.retryAt, cl.retaking = parked, 0, 0, false
}

// lose ends a hold that is no longer safe. Its znodes may well be there still.
func (c *Core) lose(now time.Duration, cl *claim, why error) {
	c.remove(cl)
	c.vacate(now, cl, &parting{id: cl.id}, false)
	c.signal(Signal{ID: cl.id, Kind: Lost, Err: why})
}

// fail ends a claim that can't be granted.
func (c *Core) fail(now time.Duration, cl *claim, err error) {
	c.leave(now, cl, false)
	c.signal(Signal{ID: cl.id, Kind: Failed, Err: err})
}

// leave takes the claim off the list and gives its znodes up. report says that
// a Released signal is due when they are gone.
func (c *Core) leave(now time.Duration, cl *claim, report bool) {
	c.remove(cl)
	if left := c.vacate(now, cl, &parting{id: cl.id, report: report}, true); left == 0 && report {
		c.signal(Signal{ID: cl.id, Kind: Released})
	}
}

// vacate dooms the znodes at all of the claim's places, and returns how many
// there may be. The record of a hold that was lost stays, for others to see;
// else orderly says that it goes as well, and before the entry.
func (c *Core) vacate(now time.Duration, cl *claim, why *parting, orderly bool) int {
	places, swap := cl.places, cl.swap
	cl.places, cl.swap = nil, nil
	return c.abandon(now, places, swap, why, orderly)
}

// abandon dooms the znodes at these places, and those of a downgrade under way.
// Permits go before their gate: who takes the gate next would find them in its
// way, and a try fail over nothing.
func (c *Core) abandon(now time.Duration, places []*place, s *swap, why *parting, orderly bool) int {
	if i := slices.IndexFunc(places, func(p *place) bool { return p.role == gate }); i >= 0 {
		places = append(slices.Delete(slices.Clone(places), i, i+1), places[i])
	}
	var nodes []*node
	for _, p := range places {
		p.over = true
		if p.record != nil && orderly {
			nodes = append(nodes, p.record)
		}
		nodes = append(nodes, p.nodes...)
	}
	if s != nil {
		for _, n := range s.news {
			if orderly || n.named != forever {
				nodes = append(nodes, n)
			}
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n.state == absent })
	why.left = len(nodes)
	for _, n := range nodes {
		n.owner, n.place, n.parting = nil, nil, why
	}
	c.doomed = append(c.doomed, nodes...)
	c.disposeAll(now, nodes)
	return len(nodes)
}
