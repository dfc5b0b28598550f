package queue

import (
	"slices"
	"time"
)

// enqueue takes the acquire's current step. It sends the create of its positions' znodes
// and, without waiting for the answer, the listings that show the entries ahead: the
// server executes a session's requests in order.
func (c *Core) enqueue(now time.Duration, acq *acquire) {
	positions := c.newPositions(acq)
	if c.inquire(acq, positions) {
		return
	}
	acq.phase, acq.retryingStep = working, false
	acq.positions = append(acq.positions, positions...)
	var creates []Creation
	var nodes []*node
	for _, p := range positions {
		c.enterQueue(p)
		creates, nodes = c.buildCreates(p, creates, nodes)
	}
	if acq.counts {
		acq.counts = false
		c.backlog.count(&nodes[0].counted)
	}
	for _, p := range positions {
		c.follow(p)
	}
	batchable := len(creates) == 1 && !nodes[0].fixed && !acq.apart && c.unbatched == 0
	c.unbatched = max(0, c.unbatched-1)
	ask := Request{Kind: Create, Creates: creates, Batchable: batchable}
	if len(c.late) > 0 && !nodes[0].fixed {
		c.renew(ask, c.takeLate(), nodes)
	} else {
		c.send(ask, func(now time.Duration, r Reply) { c.created(now, nodes, r) })
	}
	for _, p := range positions {
		if p.query != following {
			c.list(p)
		}
	}
}

// buildCreates adds a position's znodes to a create.
func (c *Core) buildCreates(p *position, creates []Creation, nodes []*node) ([]Creation, []*node) {
	acq := p.acquire
	add := func(n *node) {
		n.owner, n.position, n.session = acq, p, c.session.Session
		data := acq.spec.Data
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
		n := &node{parent: p.parent, prefix: baseOf(acq.spec.Node), named: byData, fixed: true, id: FormatGUID(guid)}
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
		for _, name := range p.names.Ask(guid, c.session.Session, p.kind(), p.form == writerEntry) {
			n := &node{parent: p.parent, prefix: name}
			if p.names.HasReusableNames() {
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

// created handles the outcome of a create, which is the same for all its znodes. The
// answers to the listings follow and move the acquire on.
func (c *Core) created(now time.Duration, nodes []*node, r Reply) {
	c.backlog.answered(&nodes[0].counted, nodes[0].session, c.session.Session)
	if nodes[0].state != creating {
		c.createdAfterSession(now, nodes, r)
		return
	}
	acq := nodes[0].owner
	switch r.Code {
	case OK:
		for i, n := range nodes {
			n.made(r, i)
		}
		c.answered(r)
		if acq != nil {
			for _, p := range acq.positions {
				c.queues[p.parent].enter(p)
			}
		}
		if acq == nil {
			c.disposeAll(now, nodes)
			return
		}
		acq.makes, acq.unmade, acq.apart = 0, nil, false
		for _, n := range nodes {
			delete(acq.access, n.position.parent)
			c.createdUnderWatch(n.position)
			if n.named == byData && !n.fixed && n.state == alive {
				// A check of its name cannot tell it from a later znode in a parent that was
				// created again. A watch and the czxid can.
				c.watchOwn(n)
			}
		}
		if err := c.inspectOwn(acq, nodes, r); err != nil {
			c.fail(now, acq, err)
			return
		}
		for _, p := range slices.Clone(acq.positions) {
			if p.query == following && p.membership == present && acq.phase == working {
				c.followCreated(now, p)
			}
		}
		return
	case Unknown:
		for _, n := range nodes {
			n.state, n.unsure = unknown, true
		}
		switch {
		case acq == nil:
			c.disposeAll(now, nodes)
		case nodes[0].fixed: // its data identify its owner, so it may stay
		default:
			c.retryStep(now, acq, now+retryPause)
		}
		return
	}
	c.createFailed(now, acq, nodes, r)
}

// unbatchedCreates is the number of creates that are not batched after one found no
// parent. A client that uses many new locks will find more parents missing, and one
// failure undoes the whole batch.
const unbatchedCreates = 32

// createFailed handles a create that certainly created nothing. With a fixed name, an
// earlier create without an answer may have succeeded, which only a Get shows.
func (c *Core) createFailed(now time.Duration, acq *acquire, nodes []*node, r Reply) {
	again := nodes[0].fixed && r.Code != NoNode && r.Code != SessionOver
	for _, n := range nodes {
		switch {
		case acq == nil && n.fixed && n.unsure && r.Code != SessionOver:
			// Also after NoNode: if the session moves back, the servers may still apply the
			// earlier create, because the parent may exist by then.
			n.state = unknown
			c.dispose(now, n)
		case again && n.unsure:
			n.state = unknown
		case acq == nil:
			c.finish(n, nil)
		default:
			n.state = absent
		}
	}
	if r.Code == NoNode || r.Code == Undone {
		c.unbatched = unbatchedCreates
	}
	if r.Code == NoNode || r.Code == Refused {
		c.disown(nodes)
	}
	switch {
	case acq == nil:
	case r.Code == NoNode && c.outdated(acq, nodes):
		c.quitUnmade(now, acq)
		c.enqueue(now, acq) // reads the access of the parents again
	case r.Code == NoNode:
		c.makeParents(now, acq, nodes, r.Failed)
	case again && r.Code == NodeExists:
		nodes[0].tried = r.Conn // the answer to the Get after it shows the owner
	case again && r.Code == NotApplied:
		acq.retry(now + retryPause)
	case r.Code == NotApplied, r.Code == SessionOver:
		c.retryStep(now, acq, now+retryPause)
	case r.Code == Undone:
		acq.apart = true
		c.retryStep(now, acq, now)
	case r.Code == NodeExists:
		// Sequence numbers stay at their maximum, so a name without a GUID is taken.
		c.fail(now, acq, &ExhaustedError{nodes[0].parent})
	default:
		c.fail(now, acq, r.Err)
	}
}

// retryStep leaves the positions of the acquire's current step, whose create was not or
// perhaps not applied. It repeats the step on the next connection or at this time. It
// keeps the positions that are clear: a gate, or the queues once the acquire is at its
// semaphores.
func (c *Core) retryStep(now time.Duration, acq *acquire, at time.Duration) {
	kept := slices.DeleteFunc(slices.Clone(acq.positions), func(p *position) bool { return p.clearance == notCleared })
	left := slices.DeleteFunc(acq.positions, func(p *position) bool { return p.clearance != notCleared })
	c.abandon(now, left, nil, &pendingRelease{}, true, false)
	acq.positions = kept
	acq.cancelRetry()
	if len(kept) == 0 {
		acq.phase, acq.step = parked, 0
	}
	acq.retryingStep = len(kept) > 0
	acq.retry(at)
}

// createdAfterSession handles the answer to a create whose session ended before it came.
// The goroutine that sends it may have been paused until the next session began. Then the
// znode belongs to no acquire, and would block the lock as long as that session lives.
func (c *Core) createdAfterSession(now time.Duration, nodes []*node, r Reply) {
	if r.Code != OK && r.Code != Unknown {
		return
	}
	for i, n := range nodes {
		if r.Code == OK {
			n.made(r, i)
		} else {
			n.state = unknown
		}
		n.owner, n.position, n.parting = nil, nil, nil
		n.session = c.session.Session
		if !slices.Contains(c.pendingDeletes, n) {
			c.pendingDeletes = append(c.pendingDeletes, n)
		}
	}
	c.disposeAll(now, nodes)
}

// inspectOwn checks what the server created, and fails on an impossible result.
func (c *Core) inspectOwn(acq *acquire, nodes []*node, r Reply) error {
	for _, n := range nodes {
		switch {
		case n.session != c.session.Session || len(nodes) == 1 && r.Owner != n.session:
			return ErrOwner
		case n.state != alive || r.Czxid <= 0:
			return ErrCreated
		}
		if n.named == forever || n.fixed {
			continue
		}
		e, class := n.position.names.Parse(n.name)
		switch {
		case class != Contender || e.Seq >= SequenceLimit:
			return &ExhaustedError{n.parent}
		case e.Seq >= SequenceWarning:
			c.signal(Signal{ID: acq.id, Kind: NearLimit, Token: e.Seq})
		}
	}
	return nil
}
