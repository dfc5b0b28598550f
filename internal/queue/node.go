package queue

import (
	"slices"
	"strings"
	"time"
)

// nodeState is what is known of a znode.
type nodeState uint8

const (
	creating nodeState = iota // asked for, not answered
	unknown                   // asked for, and the answer was lost: perhaps there
	alive                     // known to have been made
	deleting                  // a delete is under way
	absent                    // gone for sure, or never made
)

// A node is one znode that a claim asked for. Its GUID is in its name.
type node struct {
	parent   string
	prefix   string // the name asked for, GUID and marker
	name     string // the name made, with its sequence number
	state    nodeState
	czxid    int64
	session  int64
	owner    *claim // nil once doomed
	formerly ID     // whose it was
	report   ID     // whose Released is due when it is gone; 0: nobody's
	retryAt  time.Duration
	refused  bool // the servers did not let it be deleted
	told     bool // that was reported
}

func (n *node) path() string { return n.parent + "/" + n.name }

// deleteRetry paces deletes that the server refuses, as by an ACL.
const deleteRetry = 30 * time.Second

// doom gives a znode up to be deleted, whatever is known of it now. report is
// the ID whose Released signal is due when it is gone, or 0.
func (c *Core) doom(now time.Duration, n *node, report ID) {
	n.formerly = n.owner.id
	n.owner = nil
	n.report = report
	if n.state == absent {
		c.finish(n, nil)
		return
	}
	c.doomed = append(c.doomed, n)
	c.dispose(now, n)
}

// dispose takes the next step towards a doomed znode's end.
func (c *Core) dispose(now time.Duration, n *node) {
	if !c.connected() {
		return
	}
	switch n.state {
	case alive:
		n.state = deleting
		c.send(Request{Kind: Delete, Path: n.path()}, func(now time.Duration, r Reply) { c.deleted(now, n, r) })
	case unknown:
		c.probe(n.parent)
	}
}

// deleted takes a delete's outcome.
func (c *Core) deleted(now time.Duration, n *node, r Reply) {
	if n.state != deleting {
		return
	}
	switch r.Code {
	case OK:
		c.answered(r)
		c.finish(n, nil)
	case NoNode:
		c.finish(n, nil)
	case SessionOver: // the session's own news says whether the znode went with it
		n.state = alive
	case Unknown, NotApplied:
		n.state = alive
		n.retryAt = now + retryPause
	default:
		n.state, n.refused = alive, true
		n.retryAt = now + deleteRetry
		if n.report != 0 && !n.told {
			n.told = true
			c.signal(Signal{ID: n.report, Kind: Released, Err: r.Err})
		}
	}
}

// finish forgets a znode that is gone.
func (c *Core) finish(n *node, err error) {
	n.state = absent
	if i := slices.Index(c.doomed, n); i >= 0 {
		c.doomed = slices.Delete(c.doomed, i, i+1)
	}
	if n.report != 0 && !n.told {
		c.signal(Signal{ID: n.report, Kind: Released, Err: err})
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
	c.send(Request{Kind: Check, Paths: []string{parent}}, func(now time.Duration, r Reply) {
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
			c.pause(parent, now+deleteRetry)
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
		if n.parent != parent || n.state != unknown {
			continue
		}
		i := slices.IndexFunc(children, func(s string) bool { return strings.HasPrefix(s, n.prefix) })
		switch {
		case i >= 0:
			n.name, n.state = children[i], alive
			c.dispose(now, n)
		case proof:
			c.finish(n, nil)
		default:
			n.retryAt = now + retryPause
		}
	}
}
