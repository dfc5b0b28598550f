package queue

import (
	"slices"
	"time"
)

// Mutexes and writers need no listing in the two cases below. sole.go has a third one.
//
//   - If a position's number directly follows that of another position of the same
//     client, its predecessor, then the entries ahead of it are the predecessor's
//     entries and the entries ahead of those. See spec/follow.pml. Both numbers must
//     come from one parent. Otherwise another client may have deleted the predecessor's
//     entry and the parent, so that the numbers began anew. A [parentWatch] proves that,
//     and so does a watch that is set on the predecessor's entry, or a later answer: that
//     entry existed when this one was created. The position also depends on whatever the
//     predecessor's list depends on. (The predecessor may be a reader, whose list lacks
//     the readers that writers ahead have become: a downgrade creates a znode, and so
//     uses up a number.)
//   - If one transaction deletes the client's last hold, which had no entry ahead, and
//     creates the position with the next number, no entry is ahead. See
//     spec/nolisting.pml.
//
// The create's answer shows whether the number is the next one. If not, the client
// lists the queue then. In the first case the position would have waited anyway. The
// second case assumes that no other client wants the lock, because the last hold did
// not wait for any.

// follow chooses the predecessor of a position that is about to be created, if it needs
// no listing.
func (c *Core) follow(p *position) {
	l := c.queues[p.parent]
	if p.role != member || p.kind() != Exclusive || p.delay > 0 || p.acquire.spec.Try || p.names.HasReusableNames() {
		return
	}
	alike := func(q *position) bool {
		return q.names == p.names && q.role == p.role && q.delay == 0 && q.acquire != p.acquire
	}
	if n := len(l.positions); n > 1 {
		if q := l.positions[n-2]; alike(q) && q.coming() {
			p.predecessor = q
		}
	} else if e := l.latest; e != nil && alike(e) && e.clearance == clearedAlone && !e.waited && len(e.nodes) == 1 && e.nodes[0].late {
		p.predecessor = e
	} else if e := c.predecessorAlone(p.parent); e != nil && alike(e) {
		p.predecessor = e
	}
	if p.predecessor != nil {
		p.query = following
	}
}

// coming reports whether the position's entries exist or their create is in flight.
func (p *position) coming() bool {
	return !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.state != alive && n.state != creating })
}

// followCreated handles the create's answer for a position that has a predecessor in
// place of a listing.
func (c *Core) followCreated(now time.Duration, p *position) {
	q := p.predecessor
	p.query = idle
	last := q.nodes[len(q.nodes)-1]
	switch {
	case !p.next(last) || !q.listed || q.membership == abandoned:
		p.predecessor = nil
		if w := c.parentWatches[p.parent]; w != nil {
			w.follows = 0
		}
		c.list(p)
		return
	case p.renews(last):
		// No entry was ahead of the last hold, and none came between.
	case c.isAlone(p, q):
		p.predecessor = nil
	case last.state == absent:
		p.predecessor = nil
		c.list(p)
		return
	default:
		c.countFollower(p)
		p.setBehind(q)
		if q.membership != present {
			p.drop(q)
		}
	}
	p.listed = true
	c.decide(now, p)
}

// countFollower counts a position whose list is that of its predecessor. From the third one in a
// row on, a watch on the parent replaces the watches that prove this for each.
func (c *Core) countFollower(p *position) {
	if w := c.parentWatchOf(p.parent); w != nil {
		if w.follows++; w.follows >= runBeforeWatch {
			c.watchParent(p.parent, w)
		}
	}
}

// next reports whether the position's number directly follows a znode's number.
func (p *position) next(last *node) bool {
	mine, _ := p.names.Parse(p.nodes[0].name)
	theirs, class := p.names.Parse(last.name)
	return class == Contender && mine.Seq == theirs.Seq+1
}

// renews reports whether the transaction that deleted a znode created the position.
func (p *position) renews(last *node) bool {
	return last.wentAt != 0 && last.wentAt == p.nodes[0].czxid
}

// listProven reports whether the position's list is proven: it was read from the servers,
// or the predecessor's entry is known to be of the same parent and the predecessor's list is
// proven.
func (p *position) listProven() bool {
	if p.discredited || p.predecessor != nil && !(p.predecessorProven() && p.predecessor.listProven()) {
		return false
	}
	p.predecessor = nil // a proof stays valid
	return true
}

// discreditFollowers makes successors list the queue before a grant if they took the
// position's list before it was proven. The caller is about to replace that list.
func (c *Core) discreditFollowers(p *position) {
	if p.listProven() {
		return
	}
	if l := c.queues[p.parent]; l != nil {
		for _, o := range l.positions {
			o.discredited = o.discredited || o.predecessor == p && o.listed
		}
	}
}

// predecessorProven reports whether the predecessor's entry is known to be of the parent in which
// the position was created: a watch on the parent shows that, or the entry existed then.
func (p *position) predecessorProven() bool {
	q := p.predecessor
	if q == nil || p.sharesParent(q) || len(q.nodes) == 1 && p.renews(q.nodes[0]) {
		return true
	}
	return !slices.ContainsFunc(q.nodes, func(n *node) bool { return !n.seen && n.wentAt == 0 })
}

// entryUnwatched records that the watch on the entry of a position that was left is used up: the
// entry is gone, or can go without another event. The answer to its delete shows whether this
// client deleted it, and so whether it existed until then.
func (l *clientQueue) entryUnwatched(name string) {
	if q := l.given[name]; q != nil {
		for _, n := range q.nodes {
			if n.name == name {
				n.seen, n.watchReq = false, 0
			}
		}
	}
}

// prove finds out whether the predecessor's entry existed when the position was created.
// The answer to a read of that entry tells, or to its delete by this client. If neither
// is in flight, prove lists the queue.
func (c *Core) prove(p *position) {
	provable := !p.discredited && !p.predecessorProven() && !slices.ContainsFunc(p.predecessor.nodes, func(n *node) bool {
		return !n.seen && n.wentAt == 0 && n.state != deleting && n.watch != ownRequested && !n.late
	})
	if provable {
		p.query = proving
		for _, n := range p.predecessor.nodes {
			n.prover = p
		}
	} else {
		c.list(p)
	}
}

// proven resumes the position that waits for an answer about a znode.
func (c *Core) proven(now time.Duration, n *node) {
	p := n.prover // at most one position directly follows
	if p == nil || p.membership != present || p.query != proving || !slices.Contains(p.predecessor.nodes, n) {
		return
	}
	p.query = idle
	if c.connected() { // otherwise the next connection begins with a listing
		c.decide(now, p)
	}
}

// ReleaseLater is Release, except that the delete waits for this client's next create,
// which includes it in its transaction, or for Flush. The caller must call Flush soon.
func (c *Core) ReleaseLater(now time.Duration, id ID) {
	c.putsOff = true
	c.Release(now, id)
	c.putsOff = false
}

// Flush deletes the znodes that wait for a create to include their delete.
func (c *Core) Flush(now time.Duration) {
	c.advance(now)
	c.flush(now)
}

func (c *Core) flush(now time.Duration) { c.disposeAll(now, c.takeLate()) }

// takeLate returns the znodes that wait for a create to include their delete, and
// clears the list.
func (c *Core) takeLate() []*node {
	late := slices.DeleteFunc(c.late, func(n *node) bool { return !n.late || n.state != alive })
	for _, n := range late {
		n.late = false
	}
	c.late = nil
	return late
}

// maxLate bounds the number of deletes that a create includes.
const maxLate = 16

// putOff reports whether the delete of these znodes waits for the next create.
func (c *Core) putOff(nodes []*node) bool {
	if !c.putsOff || len(nodes) != 1 || nodes[0].state != alive || nodes[0].named != byGUID || len(c.late) >= maxLate {
		return false
	}
	nodes[0].late = true
	c.late = append(c.late, nodes[0])
	return true
}

// renew creates znodes and deletes others in one transaction. If one operation fails,
// none is applied, and each is then sent by itself.
func (c *Core) renew(ask Request, late, nodes []*node) {
	ask.Kind, ask.Paths = Renew, paths(late)
	for _, n := range late {
		n.state = deleting
	}
	c.send(ask, func(now time.Duration, r Reply) {
		made, failed := r, r.Failed-len(nodes)
		switch {
		case r.Code == OK:
			made.Owner = nodes[0].session // the answer to a multi names no owner
		case r.Code == Undone, r.Code != Unknown && r.Code != SessionOver && r.Code != NotApplied && (r.Failed < 0 || failed >= 0):
			made.Code = Undone
		}
		for i, n := range late {
			d := r
			switch {
			case r.Code == OK:
				d.Zxid = r.Czxid
			case made.Code == Undone && i != failed, r.Failed >= 0 && failed < 0:
				d.Code = Undone
			}
			c.deleted(now, n, d)
		}
		c.created(now, nodes, made)
	})
}
