package queue

import (
	"slices"
	"time"
)

// Two listings can be spared, for mutexes and writers:
//
//   - A place that joins right behind another of its own client's, by its number,
//     has that one ahead and whoever that one has. spec/follow.pml has the rule: the
//     other was there when this one was made, so that both numbers are of one
//     parent. It has to be seen there, by a watch that stands or an answer that
//     came later: else somebody may have deleted it and the parent, and the
//     numbers begun anew. And with that one's list goes what that one relies on. (It
//     may be a reader, whose list lacks the readers that writers ahead have become: a
//     downgrade makes a znode, and so uses up a number.)
//   - A place that is made by the transaction that deletes the client's last hold,
//     which stood alone, and has the next number, has nobody ahead. spec/nolisting.pml
//     has the rule.
//
// Whether the number is the next one shows with the create's answer; if it is not
// the queue is listed then. The first kind of place would have waited anyway. The
// second bets on a lock that nobody else wants: that the last hold had not to wait
// for anybody is what it goes by.

// follow says behind which place one that is about to be made does without a
// listing.
func (c *Core) follow(p *place) {
	l := c.lanes[p.parent]
	if p.role != member || p.kind != Exclusive || p.delay > 0 || p.claim.spec.Try || p.names.Nameless() {
		return
	}
	alike := func(q *place) bool {
		return q.names == p.names && q.role == p.role && q.delay == 0 && q.claim != p.claim
	}
	if n := len(l.places); n > 1 {
		if q := l.places[n-2]; alike(q) && q.coming() {
			p.behind = q
		}
	} else if e := l.latest; e != nil && alike(e) && e.alone && !e.waited && len(e.nodes) == 1 && e.nodes[0].late {
		p.behind = e
	}
	p.listing = p.behind != nil
}

// coming reports whether the place's entries are there, or were asked for.
func (p *place) coming() bool {
	return !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.state != alive && n.state != creating })
}

// fallIn takes the number of a place that was made without a listing.
func (c *Core) fallIn(now time.Duration, p *place) {
	q := p.behind
	p.listing = false
	last := q.nodes[len(q.nodes)-1]
	switch {
	case !p.next(last) || !q.listed || q.over && !q.handed:
		p.behind = nil
		c.look(p)
		return
	case p.renews(last):
		p.ahead = nil // nobody was ahead of the last hold, and nobody came between
	case last.state == absent:
		p.behind = nil
		c.look(p)
		return
	default:
		// The lists of those in line share their room: each is the one before and one
		// more, and gets shorter at the front.
		if p.ahead = q.ahead; q.lent {
			p.ahead = slices.Clone(q.ahead)
		}
		q.lent = true
		for _, n := range q.nodes {
			e, _ := p.names.Parse(n.name)
			p.ahead = append(p.ahead, e)
		}
		if q.over {
			p.drop(q)
		}
	}
	p.listed = true
	p.reckon()
	c.line(now, p)
}

// next reports whether the place has the number behind a znode's.
func (p *place) next(last *node) bool {
	mine, _ := p.names.Parse(p.nodes[0].name)
	theirs, class := p.names.Parse(last.name)
	return class == Contender && mine.Seq == theirs.Seq+1
}

// renews reports whether the place was made by the transaction that deleted a
// znode.
func (p *place) renews(last *node) bool { return last.wentAt != 0 && last.wentAt == p.nodes[0].czxid }

// founded reports whether the place's own list may be gone by: it was read, or the
// entry that this one was made behind was there at that time, and so with the list
// that was taken from there.
func (p *place) founded() bool {
	if p.loose || p.behind != nil && !(p.led() && p.behind.founded()) {
		return false
	}
	p.behind = nil // what is proven stays so
	return true
}

// loosen has those list the queue before they are granted who took the place's list
// before it was proven: the place is about to have another.
func (c *Core) loosen(p *place) {
	if p.founded() {
		return
	}
	if l := c.lanes[p.parent]; l != nil {
		for _, o := range l.places {
			o.loose = o.loose || o.behind == p && o.listed
		}
	}
}

// led reports whether the entry that the place was made behind was there at that
// time.
func (p *place) led() bool {
	q := p.behind
	if q == nil || len(q.nodes) == 1 && p.renews(q.nodes[0]) {
		return true
	}
	return !slices.ContainsFunc(q.nodes, func(n *node) bool { return !n.seen && n.wentAt == 0 })
}

// unsee takes it that the entry of a place that was given up is gone. Whether this
// client deleted it, so that it was there before, the answer to the delete tells.
func (l *lane) unsee(name string) {
	if q := l.given[name]; q != nil {
		for _, n := range q.nodes {
			n.seen = n.seen && n.name != name
		}
	}
}

// prove has it found out whether the entry that a place was made behind was there
// then. The answer to a look at it tells, or that its own client deleted it since;
// if neither is under way, a listing tells who is ahead.
func (c *Core) prove(p *place) {
	p.pending = !p.loose && !p.led() && !slices.ContainsFunc(p.behind.nodes, func(n *node) bool {
		return !n.seen && n.wentAt == 0 && n.state != deleting && !n.looking && !n.late
	})
	p.listing = true
	if !p.pending {
		c.look(p)
	}
}

// proven has those go on that waited for an answer about a znode.
func (c *Core) proven(now time.Duration, n *node) {
	l := c.lanes[n.parent]
	if l == nil {
		return
	}
	for _, p := range l.places {
		if !p.pending || !slices.Contains(p.behind.nodes, n) {
			continue
		}
		p.pending, p.listing = false, false
		if c.connected() { // else the next connection begins with a listing
			c.line(now, p)
		}
		return // there is one at the most: it came right behind
	}
}

// ReleaseLater is Release, but the delete is not asked for before the next create
// of this client's, which takes it along in its transaction, or Flush, which has to
// follow in a moment.
func (c *Core) ReleaseLater(now time.Duration, id ID) {
	c.putsOff = true
	c.Release(now, id)
	c.putsOff = false
}

// Flush has deleted what waits for a create to take it along.
func (c *Core) Flush(now time.Duration) {
	c.advance(now)
	c.flush(now)
}

func (c *Core) flush(now time.Duration) { c.disposeAll(now, c.takeLate()) }

// takeLate returns the znodes that wait for a create to take them along.
func (c *Core) takeLate() []*node {
	late := slices.DeleteFunc(c.late, func(n *node) bool { return !n.late || n.state != alive })
	for _, n := range late {
		n.late = false
	}
	c.late = nil
	return late
}

// maxLate bounds the transaction of a create and those that it takes along.
const maxLate = 16

// putOff reports whether the delete of what was given up waits.
func (c *Core) putOff(nodes []*node) bool {
	if !c.putsOff || len(nodes) != 1 || nodes[0].state != alive || nodes[0].named != byGUID || len(c.late) >= maxLate {
		return false
	}
	nodes[0].late = true
	c.late = append(c.late, nodes[0])
	return true
}

// renew makes znodes and deletes others in one transaction. If one can't be
// deleted, or made, none is, and each is asked for by itself.
func (c *Core) renew(ask Request, late, nodes []*node) {
	ask.Kind, ask.Paths = Renew, paths(late)
	for _, n := range late {
		n.state = deleting
	}
	c.send(ask, func(now time.Duration, r Reply) {
		made, failed := r, r.Failed-len(nodes)
		switch {
		case r.Code == OK:
			made.Owner = nodes[0].session // a multi tells of no owner
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
