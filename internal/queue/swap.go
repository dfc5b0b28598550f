package queue

import (
	"slices"
	"time"
)

// A swap is a writer's downgrade: one multi makes a reader's entry with the
// writer's own sequence number and deletes the writer's. So no other writer can
// come between, and every waiter that sees the writer's entry go and lists again
// finds the reader's.
type swap struct {
	call       uint64
	data       []byte
	olds, news []*node
	conn       uint64 // of the write that was answered ahead of the listing
	unsure     bool   // its answer was lost: perhaps done
	done       bool   // it was carried out, but perhaps to another's entry: see [Core.lookAbove]
	underWay   bool
	missed     bool // an entry was said not to be there, or another's, meanwhile
}

// Downgrade makes a writer's hold a reader's. data goes into the new znode. The
// Downgraded signal follows, unless the hold ends before.
func (c *Core) Downgrade(now time.Duration, id ID, data []byte, call uint64) {
	c.advance(now)
	cl := c.claim(id)
	answer := Signal{ID: id, Kind: Downgraded, Call: call}
	switch {
	case cl == nil || cl.phase != held:
		answer.Err = ErrNotHeld
	case !cl.downgradable() || cl.swap != nil:
		answer.Err = ErrNotWriter
	}
	if answer.Err != nil {
		c.signal(answer)
		return
	}
	p := cl.places[0]
	s := &swap{call: call, data: data, olds: p.nodes}
	guid := c.cfg.GUID()
	names := p.names.Ask(guid, c.session.Session, Shared, false)
	for i, n := range p.nodes {
		name := names[i] + n.name[len(n.name)-digits:]
		s.news = append(s.news, &node{parent: p.parent, prefix: name, name: name, named: n.named, id: FormatGUID(guid), session: n.session, owner: cl, place: p})
	}
	if p.record != nil {
		s.olds = append(slices.Clone(s.olds), p.record)
		s.news = append(s.news, &node{parent: p.record.parent, prefix: names[0], name: names[0], named: forever, owner: cl, place: p})
	}
	cl.swap = s
	if s.olds[0].named == byData && !c.connected() {
		s.undone() // the entry may be another's by the time that it could be sent
		return
	}
	if s.olds[0].named == byData && s.olds[0].looking {
		s.undone() // or is by now, as something has happened to it
		c.settleSwap(now, cl)
		return
	}
	c.sendSwap(now, cl)
}

// downgradable reports whether the hold is one writer's.
func (cl *claim) downgradable() bool {
	if len(cl.places) != 1 {
		return false
	}
	p := cl.places[0]
	return p.role == member && p.writer && p.kind == Exclusive && p.names.shared()
}

func (c *Core) sendSwap(now time.Duration, cl *claim) {
	s := cl.swap
	r := Request{Kind: Swap}
	for _, n := range s.news {
		n.state, n.session = creating, c.session.Session
		data := s.data
		if n.named == byData {
			data = withID(data, n.id)
		}
		r.Creates = append(r.Creates, Creation{Path: n.path(), Data: data, Persistent: n.named == forever, Access: cl.places[0].access})
	}
	for _, n := range s.olds {
		r.Paths = append(r.Paths, n.path())
	}
	s.underWay = true
	c.send(r, func(now time.Duration, r Reply) {
		s.underWay = false
		if cl.swap != s {
			c.orphaned(now, s, r)
			return
		}
		switch r.Code {
		case OK:
			for _, n := range s.news {
				n.czxid = r.Czxid
			}
			c.answered(r)
			if s.olds[0].named == byData {
				s.carriedOut()
				return
			}
			c.swapped(now, cl)
		case Unknown:
			s.unsure = true
			for _, n := range s.news {
				n.state = unknown
			}
			cl.retry(now + retryPause)
		case NotApplied:
			s.undone()
			cl.retry(now + retryPause)
		case SessionOver: // the session's own news follows, and ends the hold
		case NoNode:
			c.swapMissed(now, cl, r.Failed)
		default:
			c.unswap(cl, r.Err)
		}
	})
	if s.olds[0].named == byData {
		c.lookAbove(cl)
	}
}

// carriedOut takes it that the multi was done. What is behind it tells whether the
// entry that it deleted was the hold's.
func (s *swap) carriedOut() {
	s.done, s.underWay, s.missed = true, true, true
	for _, n := range s.olds {
		n.seen = false
	}
	for _, n := range s.news {
		n.state = alive
	}
}

// lookAbove reads the parent behind a multi that knows the entry by its name. Where the
// lock was deleted and made anew, that may have been another's, and the reader's entry
// then stands in another queue, where nothing is ahead or behind of it by right. The news
// that the hold's own was deleted does not tell, since the multi's own delete gives the
// same; nor can a multi ask for who made an entry.
func (c *Core) lookAbove(cl *claim) {
	s := cl.swap
	c.send(Request{Kind: Get, Path: s.olds[0].parent}, func(now time.Duration, r Reply) {
		if cl.swap != s || !s.done || s.unsure {
			return
		}
		s.underWay = false
		switch {
		case r.Code == OK && s.sameQueue(r):
			c.swapped(now, cl)
		case r.Code == OK, r.Code == NoNode:
			c.misplaced(now, cl)
		case r.Code == Refused:
			c.lose(now, cl, r.Err)
		case r.Code != SessionOver:
			s.unsure = true
			cl.retry(now + retryPause)
		}
	})
}

// sameQueue reports, by what its parent says, whether an entry stands where the hold's
// own was made: numbers begin anew in a parent that was made later only.
func (s *swap) sameQueue(parent Reply) bool { return parent.Czxid <= s.olds[0].czxid }

// misplaced ends a hold whose queue is gone.
func (c *Core) misplaced(now time.Duration, cl *claim) {
	s := cl.swap
	s.missed = true
	c.signal(Signal{ID: cl.id, Kind: Downgraded, Call: s.call, Err: ErrGone})
	for _, n := range s.news {
		n.distrust()
	}
	c.lose(now, cl, ErrGone) // with what the multi made
}

// undone takes it that the multi was surely not done. It is sent again, where the
// entry's name may be another's by then only if it is seen not to be.
func (s *swap) undone() {
	for _, n := range s.news {
		n.state = absent
	}
	s.unsure = s.olds[0].named == byData
}

// swapMissed takes it that a downgrade found a znode missing, in the operation
// with this index. Somebody may have removed a record, or the parent of the
// records: then it does without. Else the entry is gone.
func (c *Core) swapMissed(now time.Duration, cl *claim, failed int) {
	s, p := cl.swap, cl.places[0]
	old := failed - len(s.news)
	switch {
	case old >= 0 && old < len(s.olds) && s.olds[old] != p.record:
		c.unswap(cl, ErrGone)
		c.gone(now, s.olds[old])
		return
	case old >= 0 && old < len(s.olds):
		s.olds = p.nodes
	case failed >= len(p.nodes) && failed < len(s.news):
		p.record.state = absent
		p.record, s.olds, s.news = nil, p.nodes, s.news[:len(p.nodes):len(p.nodes)]
	default: // so that a listing tells
		s.unsure = true
		for _, n := range s.news {
			n.state = unknown
		}
		cl.retry(now + retryPause)
		return
	}
	c.sendSwap(now, cl)
}

// orphaned takes the outcome of a downgrade whose hold has ended: both its
// entries are doomed, and this tells which of them is there.
func (c *Core) orphaned(now time.Duration, s *swap, r Reply) {
	reports := func(n *node) bool { return n.parting != nil && n.parting.report && n.named != forever }
	if r.Code != OK && r.Code != Unknown && !s.unsure {
		for _, n := range s.olds {
			n.due = reports(n)
		}
	}
	var made []*node
	for _, n := range s.news {
		if n.owner != nil || n.state != creating {
			continue
		}
		switch r.Code {
		case OK:
			n.state, n.due = alive, reports(n)
		case Unknown:
			n.state = unknown
		default:
			c.finish(n, nil)
			continue
		}
		made = append(made, n)
	}
	c.disposeAll(now, made)
}

// swapped puts the reader's entry in the writer's stead.
func (c *Core) swapped(now time.Duration, cl *claim) {
	s, p := cl.swap, cl.places[0]
	cl.swap = nil
	for _, n := range s.olds {
		n.state, n.owner = absent, nil
		p.were = append(p.were, n.name)
	}
	for _, n := range s.news {
		n.state = alive
	}
	p.nodes, p.kind = s.news, Shared
	if p.record != nil {
		last := len(s.news) - 1
		p.nodes, p.record = s.news[:last:last], s.news[last]
	}
	if cl.watching || s.olds[0].wantsWatch {
		c.watchOwns(cl)
	}
	c.signal(Signal{ID: cl.id, Kind: Downgraded, Call: s.call, Node: p.nodes[0].path(), Nodes: paths(p.nodes)})
	// Those of this client's that wait for the writer's entry do not watch it. (Who
	// has listed since it went waits for the reader's, or does not mind that.)
	if l := c.lanes[p.parent]; l != nil {
		for _, o := range slices.Clone(l.places) {
			if !o.over && !o.listing && o != p && slices.Contains(p.were, o.blocker) && c.connected() {
				c.strike(now, o, o.blocker)
			}
		}
	}
}

// unswap ends a downgrade that was not done.
func (c *Core) unswap(cl *claim, why error) {
	s := cl.swap
	cl.swap = nil
	for _, n := range s.news {
		n.state, n.owner = absent, nil
	}
	for _, n := range cl.nodes() {
		if s.missed && n.state == alive && why != ErrGone {
			c.watchOwn(n) // it was left to the outcome, which does not tell
		}
	}
	c.signal(Signal{ID: cl.id, Kind: Downgraded, Call: s.call, Err: why})
}

// settleSwap takes up a downgrade again: one that was surely not done is sent
// again; after a lost answer a listing tells, behind a write of this session on
// the same connection.
func (c *Core) settleSwap(now time.Duration, cl *claim) {
	s := cl.swap
	if s.underWay {
		return
	}
	if !s.unsure {
		c.sendSwap(now, cl)
		return
	}
	s.underWay = true
	parent := cl.places[0].parent
	c.send(Request{Kind: Check, Paths: []string{parent}}, func(now time.Duration, r Reply) {
		s.conn = 0
		switch r.Code {
		case OK:
			s.conn = r.Conn
			c.answered(r)
		case NoNode: // which is an answer of the quorum's as well
			s.conn = r.Conn
		}
	})
	if s.olds[0].named == byData {
		c.readSwap(cl)
		return
	}
	c.send(Request{Kind: List, Path: parent}, func(now time.Duration, r Reply) {
		c.settledSwap(now, cl, s, r, func(n *node) bool { return n.named != forever && slices.Contains(r.Children, n.name) })
	})
}

// readSwap finds out which entry is there by what both say, as their names may have come
// to be another's.
func (c *Core) readSwap(cl *claim) {
	s, all := cl.swap, Reply{Code: OK}
	var found []*node
	read := func(r Reply) {
		if r.Code != OK && r.Code != NoNode && all.Code == OK {
			all.Code, all.Err = r.Code, r.Err
		}
		all.Conn = r.Conn
	}
	for _, n := range []*node{s.olds[0], s.news[0]} {
		c.send(Request{Kind: Get, Path: n.path()}, func(_ time.Duration, r Reply) {
			read(r)
			if r.Code == OK && n.same(r) {
				n.czxid = r.Czxid
				found = append(found, n)
			}
		})
	}
	c.send(Request{Kind: Get, Path: s.olds[0].parent}, func(now time.Duration, r Reply) {
		read(r)
		proven := r.Code == OK && all.Code == OK && s.conn != 0 && s.conn == r.Conn
		if cl.swap == s && proven && !s.sameQueue(r) {
			c.misplaced(now, cl)
			return
		}
		c.settledSwap(now, cl, s, all, func(n *node) bool { return slices.Contains(found, n) })
	})
}

// settledSwap takes what was read, behind a write, of a downgrade whose outcome was not
// known: r says how that went, and there which of the entries were seen.
func (c *Core) settledSwap(now time.Duration, cl *claim, s *swap, r Reply, there func(*node) bool) {
	s.underWay = false
	if cl.swap != s {
		return
	}
	switch proven := r.Code == OK && s.conn != 0 && s.conn == r.Conn; {
	case proven && slices.ContainsFunc(s.news, there):
		c.swapped(now, cl)
		for _, n := range cl.nodes() {
			if !there(n) {
				c.gone(now, n)
			}
		}
	case proven && slices.ContainsFunc(s.olds, there):
		s.unsure = false
		c.sendSwap(now, cl)
	case proven, r.Code == NoNode:
		c.unswap(cl, ErrGone)
		c.gone(now, s.olds[0])
	case r.Code == Refused:
		// Somebody took the right to list away. Without it nothing proves that
		// either entry is there.
		c.lose(now, cl, r.Err)
	case r.Code != SessionOver:
		cl.retry(now + retryPause)
	}
}
