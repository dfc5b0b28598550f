package queue

import (
	"slices"
	"time"
)

// join takes the claim's present step: it asks for the znodes of its places and
// for the listings that show who is ahead, in one go: the server carries a
// session's requests out in order.
func (c *Core) join(now time.Duration, cl *claim) {
	places := c.stand(cl)
	if c.inquire(cl, places) {
		return
	}
	cl.phase, cl.retaking = working, false
	cl.places = append(cl.places, places...)
	var creates []Creation
	var nodes []*node
	for _, p := range places {
		c.enter(p)
		creates, nodes = c.ask(p, creates, nodes)
	}
	for _, p := range places {
		c.follow(p)
	}
	joins := len(creates) == 1 && !nodes[0].fixed && !cl.apart && c.wary == 0
	c.wary = max(0, c.wary-1)
	ask := Request{Kind: Create, Creates: creates, Join: joins}
	if len(c.late) > 0 && !nodes[0].fixed {
		c.renew(ask, c.takeLate(), nodes)
	} else {
		c.send(ask, func(now time.Duration, r Reply) { c.created(now, nodes, r) })
	}
	for _, p := range places {
		if p.behind == nil {
			c.look(p)
		}
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
		creates = append(creates, Creation{Path: n.parent + "/" + n.prefix, Data: data, Sequential: sequential, Persistent: n.named == forever, Access: p.access})
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
		for _, name := range p.names.Ask(guid, c.session.Session, p.kind, p.writer) {
			n := &node{parent: p.parent, prefix: name}
			if p.names.Nameless() {
				n.named, n.id = byData, FormatGUID(guid)
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
		cl.makes, cl.unmade, cl.apart = 0, nil, false
		for _, n := range nodes {
			delete(cl.access, n.place.parent)
			if n.named == byData && !n.fixed {
				// A check of its name does not tell it from one that was made anew
				// after the parent was: only a watch and the czxid do.
				c.watchOwn(n)
			}
		}
		if err := c.inspectOwn(cl, nodes, r); err != nil {
			c.fail(now, cl, err)
			return
		}
		for _, p := range slices.Clone(cl.places) {
			if p.behind != nil && !p.over && cl.phase == working {
				c.fallIn(now, p)
			}
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
			c.retake(now, cl, now+retryPause)
		}
		return
	}
	c.notMade(now, cl, nodes, r)
}

// wariness is how many creates are not joined with others after one had no parent:
// where many new locks are used, more will be missing, and one undoes all that it is
// joined with.
const wariness = 32

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
	if r.Code == NoNode || r.Code == Undone {
		c.wary = wariness
	}
	if r.Code == NoNode || r.Code == Refused {
		c.disown(nodes)
	}
	switch {
	case cl == nil:
	case r.Code == NoNode && c.outdated(cl, nodes):
		cl.quitUnmade(c)
		c.join(now, cl) // which reads who may use what is above now
	case r.Code == NoNode:
		c.makeParents(now, cl, nodes, r.Failed)
	case perhaps && r.Code == NodeExists:
		nodes[0].tried = r.Conn // the answer behind it tells whose it is
	case perhaps && r.Code == NotApplied:
		cl.retry(now + retryPause)
	case r.Code == NotApplied, r.Code == SessionOver:
		c.retake(now, cl, now+retryPause)
	case r.Code == Undone:
		cl.apart = true
		c.retake(now, cl, now)
	case r.Code == NodeExists:
		// Numbers that have come to their end stick, and where names have no room
		// for a GUID the next entry's is taken.
		c.fail(now, cl, ErrExhausted)
	default:
		c.fail(now, cl, r.Err)
	}
}

// retake gives up the places of the claim's present step, whose create was not
// done or may not have been, and takes the step again with the next connection or
// at this time. It keeps those where it stands clear: a gate, or its queues while
// it is about semaphores.
func (c *Core) retake(now time.Duration, cl *claim, at time.Duration) {
	kept := slices.DeleteFunc(slices.Clone(cl.places), func(p *place) bool { return !p.clear })
	left := slices.DeleteFunc(cl.places, func(p *place) bool { return p.clear })
	c.abandon(now, left, nil, &parting{}, true, false)
	cl.places = kept
	cl.rest()
	if len(kept) == 0 {
		cl.phase, cl.step = parked, 0
	}
	cl.retaking = len(kept) > 0
	cl.retry(at)
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
