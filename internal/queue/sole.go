package queue

import (
	"maps"
	"time"
)

// A client that acquires the same free lock again and again needs no listing: if the last
// entry that it deleted had nothing ahead, and the number of its new entry directly
// follows, no entry was created in between, so nothing is ahead of the new one either.
//
// Both numbers must be of one parent. Between the two entries the parent may be empty, and
// then the servers or another client may delete it, and the next client creates it with
// numbers that begin anew. A watch on the parent shows that: the client sets it before it
// deletes the last entry, and the servers report the deletion before they answer the create
// of the new entry, on the same connection. See spec/nolisting.pml. No other user of the
// session may end the watch, so this needs a session of the client's own. Servers do not
// report events to a client that may no longer read the znode: assumption A6 excludes that.
//
// Where the guess fails, the client lists the queue a round trip later than it otherwise
// would. So it guesses only if its last two entries had consecutive numbers. It sets the
// watch, which costs a request, only after soleRun such pairs.

// soleUse is what a client knows about a lock that it has acquired without waiting.
type soleUse struct {
	last  *position // the last position that was left; nil if it had to wait, or was left before the watch was requested
	run   int       // how often in a row the next entry had the next number
	watch parentWatch
	req   uint64 // the request that sets the watch
}

// parentWatch is what is known of the watch on a lock's parent.
type parentWatch uint8

const (
	parentUnwatched parentWatch = iota
	parentRequested             // the request that sets the watch is in flight
	parentWatched               // the parent has existed since the answer
	parentUnproven              // a watch of an earlier connection, which the session sets again
	parentRefused               // this client may not read the parent
)

// soleRun is how often in a row a client's next entry has the next number before the client
// expects that again.
const soleRun = 3

// maxSoleUses bounds the number of locks that a client knows this about, and so the number
// of its watches on parents.
const maxSoleUses = 64

// leftAlone records that a position was left; handed says that its owner had finished with
// it.
func (c *Core) leftAlone(p *position, handed bool) {
	s := c.soleUses[p.parent]
	alone := c.cfg.OwnSession && handed && p.role == member && p.clearance == clearedAlone && !p.waited && p.delay == 0 &&
		len(p.nodes) == 1 && len(p.were) == 0 && p.nodes[0].state == alive && p.nodes[0].named == byGUID
	switch {
	case !alone && s != nil:
		s.last = nil
		if p.waited {
			s.run = 0
		}
	case !alone:
	case s != nil:
		s.last = p
	default:
		if len(c.soleUses) >= maxSoleUses {
			maps.DeleteFunc(c.soleUses, func(_ string, s *soleUse) bool { return s.watch == parentUnwatched || s.watch == parentRefused })
		}
		if len(c.soleUses) >= maxSoleUses {
			return
		}
		if c.soleUses == nil {
			c.soleUses = map[string]*soleUse{}
		}
		c.soleUses[p.parent] = &soleUse{last: p}
	}
}

// predecessorAlone returns the position that was left last, if the next one is likely to
// have the next number, and that would prove that nothing is ahead of it.
func (c *Core) predecessorAlone(parent string) *position {
	if s := c.soleUses[parent]; s != nil && s.run > 0 && s.watch == parentWatched {
		return s.last
	}
	return nil
}

// isAlone reports whether nothing is ahead of a position whose number directly follows that
// of q, which was left.
func (c *Core) isAlone(p, q *position) bool {
	s, last := c.soleUses[p.parent], q.nodes[0]
	return s != nil && s.last == q && s.watch == parentWatched && last.wentAt > 0 && last.wentAt < p.nodes[0].czxid
}

// listedAlone records what a listing showed of a position.
func (c *Core) listedAlone(p *position) {
	s := c.soleUses[p.parent]
	if s == nil || s.last == nil {
		return
	}
	if p.membership != present || p.clearance != clearedAlone || p.waited || !p.next(s.last.nodes[0]) {
		s.run = 0
		return
	}
	s.run++
	if s.run >= soleRun && (s.watch == parentUnwatched || s.watch == parentUnproven) {
		c.watchParent(p.parent, s)
	}
}

// watchParent sets the watch on a lock's parent. The position that was left last may have
// been deleted before that, so it proves nothing.
func (c *Core) watchParent(parent string, s *soleUse) {
	s.watch, s.last, s.req = parentRequested, nil, c.lastReq+1
	c.send(Request{Kind: Get, Path: parent, Watch: true}, func(_ time.Duration, r Reply) {
		switch {
		case c.soleUses[parent] != s || s.watch != parentRequested || s.req != r.ID: // the watch has fired, or was of another connection
		case r.Code == OK:
			s.watch = parentWatched
		case r.Code == NoNode:
			delete(c.soleUses, parent)
		case r.Code == Refused:
			s.watch = parentRefused
		default:
			s.watch = parentUnproven
		}
	})
}

// unproveSoleUses forgets what the last connection has proven. The session sets its watches
// again on the new one, so they still count.
func (c *Core) unproveSoleUses() {
	maps.DeleteFunc(c.soleUses, func(_ string, s *soleUse) bool {
		if s.watch == parentUnwatched || s.watch == parentRefused {
			return true
		}
		s.last, s.run, s.watch = nil, 0, parentUnproven
		return false
	})
}
