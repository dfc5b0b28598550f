package queue

import (
	"slices"
	"time"
)

// A swap is a writer's downgrade: one multi creates a reader's entry with the writer's
// sequence number and deletes the writer's entry. So no other writer can come between,
// and a waiter that lists again after the writer's entry is deleted finds the reader's.
//
// The multi deletes only the version of the writer's entry whose data the core knows. So no
// downgrade loses a release request, which is part of the data: see [dataUpdate].
type swap struct {
	call       uint64
	data       []byte
	olds, news []*node
	conn       uint64 // on which the write before the listing was answered
	unsure     bool   // its answer was lost: it may have been applied
	done       bool   // it was applied, but perhaps to another client's entry: see [Core.lookAbove]
	underWay   bool
	missed     bool // an entry was reported missing or replaced meanwhile
	replaced   bool // another client has deleted an entry: see [Core.identify]
	rounds     int  // how often the multi failed because another client had changed the data
}

// Downgrade turns a writer's hold into a reader's. data goes into the new znode. A
// Downgraded signal follows unless the hold ends first.
func (c *Core) Downgrade(now time.Duration, id ID, data []byte, call uint64) {
	c.advance(now)
	acq := c.acquireByID(id)
	answer := Signal{ID: id, Kind: Downgraded, Call: call}
	switch {
	case acq == nil || acq.phase != held:
		answer.Err = ErrNotHeld
	case !acq.downgradable() || acq.swap != nil:
		answer.Err = ErrNotWriter
	case acq.update != nil: // data can already be out of date
		answer.Err = ErrUnproven
	}
	if answer.Err != nil {
		c.signal(answer)
		return
	}
	p := acq.positions[0]
	s := &swap{call: call, data: data, olds: p.nodes}
	guid := c.cfg.GUID()
	names := p.names.Ask(guid, c.session.Session, Shared, false)
	for i, n := range p.nodes {
		name := names[i] + n.name[len(n.name)-digits:]
		s.news = append(s.news, &node{parent: p.parent, prefix: name, name: name, named: n.named, id: FormatGUID(guid), session: n.session, owner: acq, position: p})
	}
	if p.record != nil {
		s.olds = append(slices.Clone(s.olds), p.record)
		s.news = append(s.news, &node{parent: p.record.parent, prefix: names[0], name: names[0], named: forever, owner: acq, position: p})
	}
	acq.swap = s
	if s.olds[0].named == byData && !c.connected() {
		s.undone() // the name may belong to another entry by the time it can be sent
		return
	}
	if s.olds[0].named == byData && s.olds[0].watch == ownRequested {
		s.undone() // or already does: an event has reported a change
		c.advanceSwap(now, acq)
		return
	}
	c.sendSwap(now, acq)
}

// downgradable reports whether the hold is a single writer's.
func (acq *acquire) downgradable() bool {
	if len(acq.positions) != 1 {
		return false
	}
	p := acq.positions[0]
	return p.role == member && p.form == writerEntry && p.names.shared()
}

func (c *Core) sendSwap(now time.Duration, acq *acquire) {
	s := acq.swap
	r := Request{Kind: Swap}
	for _, n := range s.news {
		n.state, n.session = creating, c.session.Session
		data := s.data
		if n.named == byData {
			data = withID(data, n.id)
		}
		if acq.revoked && n.named != forever {
			data = WithRequest(data, acq.request)
		}
		r.Creates = append(r.Creates, Creation{Path: n.path(), Data: data, Persistent: n.named == forever, Access: acq.positions[0].access})
	}
	for _, n := range s.olds {
		version := n.version
		if n.named == forever {
			version = -1
		}
		r.Paths, r.Versions = append(r.Paths, n.path()), append(r.Versions, version)
	}
	s.underWay = true
	c.identify(acq)
	c.send(r, func(now time.Duration, r Reply) {
		s.underWay = false
		if r.Code == Unknown { // applied later, it deletes the writer's entry by its name
			for _, n := range slices.Concat(s.olds, s.news) {
				n.asked = n.asked || n.named == byData
			}
		}
		if acq.swap != s {
			c.orphaned(now, s, r)
			return
		}
		switch r.Code {
		case OK:
			for _, n := range s.news {
				n.czxid = r.Czxid
			}
			c.answered(r)
			switch {
			case s.olds[0].named == byData:
				s.carriedOut()
			case s.replaced:
				for _, n := range s.news {
					n.state = alive
				}
				c.misplaced(now, acq)
			default:
				c.swapped(now, acq)
			}
		case Unknown:
			s.unsure = true
			for _, n := range s.news {
				n.state = unknown
			}
			acq.retry(now + retryPause)
		case NotApplied:
			s.undone()
			acq.retry(now + retryPause)
		case SessionOver: // the session change follows, and ends the hold
		case NoNode:
			c.swapMissed(now, acq, r.Failed)
		case BadVersion: // the read before the next multi returns the new data and version
			if s.rounds++; s.rounds == maxUpdateRounds {
				c.unswap(acq, r.Err)
				return
			}
			s.undone()
			c.advanceSwap(now, acq)
		default:
			c.unswap(acq, r.Err)
		}
	})
	if s.olds[0].named == byData {
		c.lookAbove(acq)
	}
}

// identify reads the entries directly before the multi, which identifies them by their names.
// If another client has deleted an entry and created a znode with its name, the multi deletes
// that znode, and another writer may hold the lock. No later check shows this, because the
// reader's entry is new. The deletion event does not show it either: it can be late, and the
// multi's own delete triggers the same event. The read also returns a release request, if
// there is one.
func (c *Core) identify(acq *acquire) {
	s := acq.swap
	for _, n := range s.olds {
		if n.named == forever {
			continue
		}
		c.send(Request{Kind: Get, Path: n.path()}, func(_ time.Duration, r Reply) {
			s.replaced = s.replaced || r.Code == NoNode || n.replaced(r)
			if acq.swap == s && r.Code == OK && !s.replaced && (n.named != byData || n.same(r)) {
				c.read(n, r)
			}
		})
	}
}

// carriedOut records that the multi was applied. The read after it shows whether the
// deleted entry was the hold's.
func (s *swap) carriedOut() {
	s.done, s.underWay, s.missed = true, true, true
	for _, n := range s.olds {
		n.seen = false
	}
	for _, n := range s.news {
		n.state = alive
	}
}

// lookAbove reads the parent after a multi that identifies the entry by a reusable name.
// If the lock was deleted and created again, the deleted entry may have been another
// client's, and the reader's entry is in another queue, where its position means nothing.
// A deletion event for the hold's entry does not show this, because the multi's own delete
// triggers the same event. A multi cannot check the creator of an entry either.
func (c *Core) lookAbove(acq *acquire) {
	s := acq.swap
	c.send(Request{Kind: Get, Path: s.olds[0].parent}, func(now time.Duration, r Reply) {
		if acq.swap != s || !s.done || s.unsure {
			return
		}
		s.underWay = false
		switch {
		case r.Code == OK && s.sameQueue(r) && !s.replaced:
			c.swapped(now, acq)
		case r.Code == OK, r.Code == NoNode:
			c.misplaced(now, acq)
		case r.Code == Refused:
			c.lose(now, acq, r.Err)
		case r.Code != SessionOver:
			s.unsure = true
			acq.retry(now + retryPause)
		}
	})
}

// sameQueue reports whether the parent is the one in which the hold's entry was created.
// Numbers begin again only in a parent that was created later.
func (s *swap) sameQueue(parent Reply) bool { return parent.Czxid <= s.olds[0].czxid }

// misplaced ends a hold whose queue or entry is gone.
func (c *Core) misplaced(now time.Duration, acq *acquire) {
	s := acq.swap
	s.missed = true
	c.signal(Signal{ID: acq.id, Kind: Downgraded, Call: s.call, Err: ErrGone})
	for _, n := range s.news {
		n.distrust()
	}
	c.lose(now, acq, ErrGone) // and deletes what the multi created
}

// undone records that the multi was certainly not applied, so that it is sent again. If
// the entry's name is reusable, the entry is read first.
func (s *swap) undone() {
	for _, n := range s.news {
		n.state = absent
	}
	s.unsure = s.olds[0].named == byData
}

// swapMissed handles a downgrade that found a znode missing in the operation with this
// index. If it is a record or the parent of the records, the downgrade is repeated without
// it. Otherwise the entry is gone.
func (c *Core) swapMissed(now time.Duration, acq *acquire, failed int) {
	s, p := acq.swap, acq.positions[0]
	old := failed - len(s.news)
	switch {
	case old >= 0 && old < len(s.olds) && s.olds[old] != p.record:
		c.unswap(acq, ErrGone)
		c.gone(now, s.olds[old])
		return
	case old >= 0 && old < len(s.olds):
		s.olds = p.nodes
	case failed >= len(p.nodes) && failed < len(s.news):
		p.record.state = absent
		p.record, s.olds, s.news = nil, p.nodes, s.news[:len(p.nodes):len(p.nodes)]
	default: // a listing then decides
		s.unsure = true
		for _, n := range s.news {
			n.state = unknown
		}
		acq.retry(now + retryPause)
		return
	}
	c.sendSwap(now, acq)
}

// orphaned handles the outcome of a downgrade whose hold has ended. Both entries are
// pending deletes, and the outcome shows which of them exists.
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

// swapped replaces the writer's entry with the reader's.
func (c *Core) swapped(now time.Duration, acq *acquire) {
	s, p := acq.swap, acq.positions[0]
	acq.swap = nil
	for _, n := range s.olds {
		n.state, n.owner = absent, nil
		p.were = append(p.were, n.name)
	}
	for _, n := range s.news {
		n.state = alive
	}
	p.nodes, p.form = s.news, readerEntry
	if p.record != nil {
		last := len(s.news) - 1
		p.nodes, p.record = s.news[:last:last], s.news[last]
	}
	c.queues[p.parent].enter(p)
	if acq.watching || s.olds[0].watch != ownUnwatched {
		c.watchOwnNodes(acq)
	}
	c.signal(Signal{ID: acq.id, Kind: Downgraded, Call: s.call, Node: p.nodes[0].path(), Nodes: paths(p.nodes)})
	// This client's waiters for the writer's entry do not watch it. (A waiter that has
	// listed since waits for the reader's entry, or is not blocked by it.)
	if l := c.queues[p.parent]; l != nil {
		for _, o := range slices.Clone(l.positions) {
			if o.membership == present && o.query == idle && o != p && slices.Contains(p.were, o.blocker.name) && c.connected() {
				c.removeBlocker(now, o, o.blocker.name)
			}
		}
	}
}

// unswap ends a downgrade that was not applied.
func (c *Core) unswap(acq *acquire, why error) {
	s := acq.swap
	acq.swap = nil
	for _, n := range s.news {
		n.state, n.owner = absent, nil
	}
	for _, n := range acq.nodes() {
		if s.missed && n.state == alive && why != ErrGone {
			c.watchOwn(n) // the outcome was to show whether it exists, and does not
		}
	}
	c.signal(Signal{ID: acq.id, Kind: Downgraded, Call: s.call, Err: why})
}

// advanceSwap resumes a downgrade. If it was certainly not applied, it is sent again.
// After a lost answer, a listing decides, which follows a write of this session on the
// same connection.
func (c *Core) advanceSwap(now time.Duration, acq *acquire) {
	s := acq.swap
	if s.underWay {
		return
	}
	if !s.unsure {
		c.sendSwap(now, acq)
		return
	}
	s.underWay = true
	parent := acq.positions[0].parent
	c.send(Request{Kind: Check, Paths: []string{parent}}, func(now time.Duration, r Reply) {
		s.conn = 0
		switch r.Code {
		case OK:
			s.conn = r.Conn
			c.answered(r)
		case NoNode: // which is also an answer from the quorum
			s.conn = r.Conn
		}
	})
	if s.olds[0].named == byData {
		c.readSwap(acq)
		return
	}
	c.send(Request{Kind: List, Path: parent}, func(now time.Duration, r Reply) {
		c.settledSwap(now, acq, s, r, func(n *node) bool { return n.named != forever && slices.Contains(r.Children, n.name) })
	})
}

// readSwap finds out which entry exists by the data of both, because their names are
// reusable.
func (c *Core) readSwap(acq *acquire) {
	s, all := acq.swap, Reply{Code: OK}
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
				if acq.swap == s {
					c.read(n, r)
				}
			}
		})
	}
	c.send(Request{Kind: Get, Path: s.olds[0].parent}, func(now time.Duration, r Reply) {
		read(r)
		proven := r.Code == OK && all.Code == OK && s.conn != 0 && s.conn == r.Conn
		if acq.swap == s && proven && !s.sameQueue(r) {
			c.misplaced(now, acq)
			return
		}
		c.settledSwap(now, acq, s, all, func(n *node) bool { return slices.Contains(found, n) })
	})
}

// settledSwap resolves a downgrade whose outcome was unknown, by a read that followed a
// write. r is the outcome of the read, and there reports which entries it showed.
func (c *Core) settledSwap(now time.Duration, acq *acquire, s *swap, r Reply, there func(*node) bool) {
	s.underWay = false
	if acq.swap != s {
		return
	}
	switch proven := r.Code == OK && s.conn != 0 && s.conn == r.Conn; {
	case proven && slices.ContainsFunc(s.news, there) && s.replaced:
		c.misplaced(now, acq)
	case proven && slices.ContainsFunc(s.news, there):
		c.swapped(now, acq)
		for _, n := range acq.nodes() {
			if !there(n) {
				c.gone(now, n)
			}
		}
	case proven && slices.ContainsFunc(s.olds, there):
		s.unsure = false
		c.sendSwap(now, acq)
	case proven, r.Code == NoNode:
		c.unswap(acq, ErrGone)
		c.gone(now, s.olds[0])
	case r.Code == Refused:
		// Without the permission to list, nothing proves that either entry exists.
		c.lose(now, acq, r.Err)
	case r.Code != SessionOver:
		acq.retry(now + retryPause)
	}
}
