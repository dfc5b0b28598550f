package queue

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// nodeState is what is known of a znode.
type nodeState uint8

const (
	creating  nodeState = iota // asked for, not answered
	unknown                    // asked for, and the answer was lost: perhaps there
	alive                      // known to have been made
	deleting                   // a delete is under way
	searching                  // a read is under way that tells whether it is there
	absent                     // gone for sure, or never made
)

// naming is by what a znode is known as this client's own.
type naming uint8

const (
	byGUID  naming = iota // in its name, made for one create and never used again
	byData                // by the id in its data, as its name has no room for it
	forever               // its name is all of it, and it outlives its session: a record
)

// A node is one znode that a claim asked for.
type node struct {
	parent  string
	prefix  string // the name asked for
	name    string // the name made, with its sequence number
	whole   string // the path made, if it is known
	named   naming
	fixed   bool   // a node lock's: the name asked for is the name made
	id      string // for byData
	tried   uint64 // fixed: on which connection a create was last refused
	state   nodeState
	czxid   int64
	session int64

	owner *claim // nil once doomed
	place *place

	unproven   bool   // it may have been deleted without a word; ask before a grant
	doubted    uint64 // the last request before that: no earlier one proves anything
	wantsWatch bool
	watched    bool
	seen       bool  // that watch's answer was that the znode is there
	looking    bool  // that watch's answer has not come
	wentAt     int64 // the transaction of its delete, if that was this client's
	late       bool  // its delete waits for a create to take it along
	due        bool  // it was a hold's when that was released, and nothing of this client's has deleted it: see [Core.missing]

	parting *parting // of a doomed one: what it is part of
	apart   bool     // its delete is not to be joined with others, as the last one was undone
	retryAt time.Duration
	refused bool // the servers did not let it be deleted
}

func (n *node) path() string {
	if n.whole != "" && n.whole[len(n.parent)+1:] == n.name {
		return n.whole
	}
	return n.parent + "/" + n.name
}

// made takes note that a create succeeded, as its i-th.
func (n *node) made(r Reply, i int) {
	n.state, n.czxid = alive, r.Czxid
	if i < len(r.Made) {
		n.name = path.Base(r.Made[i])
		// The name is a part of the path, which therefore costs nothing to keep.
		if whole := r.Made[i]; len(whole) == len(n.parent)+1+len(n.name) && strings.HasPrefix(whole, n.parent) {
			n.whole = whole
		}
	}
}

// doubt takes it that a waiter's znode may be deleted without a word.
func (c *Core) doubt(n *node) {
	if n.owner.phase != held {
		n.unproven, n.doubted = true, c.lastReq
	}
}

// A parting is all that a claim leaves behind at once.
type parting struct {
	id     ID
	left   int  // how many znodes may be there still
	report bool // a Released signal is due
	told   bool // it was given
	err    error
}

// deleteRetry is the longest pause before a delete that the server refused, as by
// an ACL, is tried again.
const deleteRetry = 30 * time.Second

// refusedPause paces what the server refuses: no storm while that lasts, and who
// waits behind is granted within a session timeout once it is permitted.
func (c *Core) refusedPause() time.Duration {
	return min(max(c.deadline.timeout, retryPause), deleteRetry)
}

// disposeAll disposes of what one claim leaves: records go before entries, as an
// entry that is gone with its record still there tells of a holder that vanished.
func (c *Core) disposeAll(now time.Duration, nodes []*node) {
	for _, records := range []bool{true, false} {
		for _, n := range nodes {
			if (n.named == forever) == records {
				c.dispose(now, n)
			}
		}
	}
}

// dispose takes the next step towards a doomed znode's end.
func (c *Core) dispose(now time.Duration, n *node) {
	if !c.connected() {
		return
	}
	switch {
	case n.state == alive, n.state == unknown && n.named == forever:
		n.state = deleting
		// What goes in order, records and permits, must not be torn apart by a failure. And
		// what is to be joined may be kept back, until the name is another's.
		joins := !n.apart && n.named == byGUID && n.parting != nil && n.parting.left == 1
		c.send(Request{Kind: Delete, Path: n.path(), Join: joins}, func(now time.Duration, r Reply) { c.deleted(now, n, r) })
	case n.state == unknown && n.fixed:
		c.settleFixed(now, n)
	case n.state == unknown:
		c.probe(n.parent)
	}
}

// deleted takes a delete's outcome.
func (c *Core) deleted(now time.Duration, n *node, r Reply) {
	if n.state != deleting {
		return
	}
	if r.Code == OK {
		n.wentAt = r.Zxid
	}
	defer c.proven(now, n)
	switch r.Code {
	case OK:
		c.answered(r)
		c.finish(n, nil)
	case NoNode:
		c.missing(n)
	case SessionOver: // the session's own news says whether the znode went with it
		n.state = alive
	case Undone:
		n.state, n.apart = alive, true
		c.dispose(now, n)
	case Unknown, NotApplied:
		n.state, n.due = alive, n.due && r.Code == NotApplied
		n.distrust()
		n.retryAt = now + retryPause
	default:
		n.state, n.refused = alive, true
		n.distrust()
		c.forget(n) // it is in the way like any other
		n.retryAt = now + c.refusedPause()
		for _, cl := range c.claims {
			if cl.spec.Try {
				cl.retry(now) // it may be waiting for this one
			}
		}
		if p := n.parting; p != nil && p.report && !p.told {
			p.told = true
			c.signal(Signal{ID: p.id, Kind: Released, Err: cmp.Or(p.err, r.Err)})
		}
	}
}

// missing forgets a doomed znode that was found not to be there. If it was there for
// sure as long as nobody else deleted it, its hold was broken before the release, and
// another client may have held the lock meanwhile: the release reports that.
func (c *Core) missing(n *node) {
	if n.due {
		c.finish(n, ErrGone)
		return
	}
	c.finish(n, nil)
}

// distrust has a doomed znode looked at before it is deleted later than at once, where
// its name may be another's by then: somebody may have deleted the lock, or the servers
// have collected its parent.
func (n *node) distrust() {
	if n.state == alive && n.named == byData {
		n.state = unknown
	}
}

// finish forgets a znode that is gone.
func (c *Core) finish(n *node, err error) {
	n.state = absent
	c.forget(n)
	if i := slices.Index(c.doomed, n); i >= 0 {
		c.doomed = slices.Delete(c.doomed, i, i+1)
	}
	p := n.parting
	n.parting = nil
	if p == nil {
		return
	}
	p.left--
	p.err = cmp.Or(p.err, err)
	if p.left == 0 && p.report && !p.told {
		p.told = true
		c.signal(Signal{ID: p.id, Kind: Released, Err: p.err})
	}
}

// A probe looks in one parent for doomed znodes whose create was not answered.
// A listing alone proves nothing: on another server, or on a leader that still
// has the old connection's create in its pipeline, it may be answered first. So
// a write of this session goes ahead of it on the same connection: the session's
// requests are carried out in order, and the old create is then done or never
// will be.
type probe struct {
	parent string
	conn   uint64 // of the write that was answered; 0: not yet
}

func (c *Core) probe(parent string) {
	if slices.ContainsFunc(c.probes, func(p probe) bool { return p.parent == parent }) {
		return
	}
	c.probes = append(c.probes, probe{parent: parent})
	barrier := Request{Kind: Check, Paths: []string{parent}}
	c.send(barrier, func(now time.Duration, r Reply) {
		// That the parent is not there is an answer of the quorum's as well.
		if r.Code == OK || r.Code == NoNode {
			for i := range c.probes {
				if c.probes[i].parent == parent {
					c.probes[i].conn = r.Conn
				}
			}
		}
	})
	c.send(Request{Kind: List, Path: parent}, func(now time.Duration, r Reply) {
		i := slices.IndexFunc(c.probes, func(p probe) bool { return p.parent == parent })
		if i < 0 {
			return
		}
		p := c.probes[i]
		c.probes = slices.Delete(c.probes, i, i+1)
		if r.Code == Refused {
			c.pause(parent, now+c.refusedPause())
			return
		}
		proof := p.conn != 0 && p.conn == r.Conn && (r.Code == OK || r.Code == NoNode)
		c.probed(now, parent, r.Children, proof)
	})
}

// pause puts off the search for a parent's unknown znodes.
func (c *Core) pause(parent string, until time.Duration) {
	for _, n := range c.doomed {
		if n.parent == parent && n.state == unknown {
			n.retryAt = until
		}
	}
}

// probed settles the unknown znodes of a parent: found ones are deleted, others
// are gone if the listing proves it.
func (c *Core) probed(now time.Duration, parent string, children []string, proof bool) {
	for _, n := range slices.Clone(c.doomed) {
		if n.parent != parent || n.state != unknown || n.fixed || n.named == forever {
			continue
		}
		if n.named == byData {
			c.searchData(now, n, children, proof)
			continue
		}
		i := slices.IndexFunc(children, func(s string) bool { return strings.HasPrefix(s, n.prefix) })
		switch {
		case i >= 0:
			n.name, n.state = children[i], alive
			c.dispose(now, n)
		case proof:
			c.missing(n)
		default:
			n.retryAt = now + retryPause
		}
	}
}

// searchData reads every child whose name is, or may be, the znode's, to find the one
// that has its id. What an incomplete search does not find may be there still.
func (c *Core) searchData(now time.Duration, n *node, children []string, proof bool) {
	n.state = searching
	left := 1
	settled := func(now time.Duration) {
		if left--; left > 0 || n.state != searching {
			return
		}
		n.state = unknown
		if proof {
			c.missing(n)
		} else {
			n.retryAt = now + retryPause
		}
	}
	for _, name := range children {
		if !strings.HasPrefix(name, n.prefix) || n.name != "" && name != n.name {
			continue
		}
		left++
		c.send(Request{Kind: Get, Path: n.parent + "/" + name}, func(now time.Duration, r Reply) {
			switch {
			case n.state != searching:
			case r.Code == OK && n.mine(r):
				n.name, n.state = name, alive
				c.dispose(now, n)
			case r.Code == Refused && n.name != "":
				// Who may not read it may delete it, and it is in everybody's way. Only under
				// A6 it is surely no other's.
				n.state = alive
				c.dispose(now, n)
			case r.Code != OK && r.Code != NoNode:
				proof = false
			}
			settled(now)
		})
	}
	settled(now)
}
