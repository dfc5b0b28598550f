package queue

import (
	"bytes"
	"time"
)

// A node lock is one ephemeral znode with a fixed name: who could make it holds
// the lock, everybody else watches it and tries again when it is gone, in no
// order. As the name tells nothing, the claim's own id stands in the data, and
// an answer that was lost is made up for by reading: a znode of this session
// with this claim's id is its own.

// withID puts an id in front of a znode's data, a JSON object or nothing.
func withID(data []byte, id string) []byte {
	out := []byte(`{"id":"` + id + `"`)
	rest := bytes.TrimPrefix(data, []byte("{"))
	if len(rest) == 0 || rest[0] == '}' {
		return append(out, '}')
	}
	return append(append(out, ','), rest...)
}

// carries reports whether a znode's data have this id, perhaps behind the words
// that ask for the lock back.
func carries(data []byte, id string) bool {
	return bytes.Contains(data, []byte(`"id":"`+id+`"`))
}

// mine reports whether what a Get read is the very znode that n stands for.
func (n *node) mine(r Reply) bool {
	if n.czxid != 0 {
		return r.Czxid == n.czxid
	}
	return r.Owner == n.session && carries(r.Data, n.id)
}

// same reports whether what a Get read is the znode n, which was known to be there
// under its name. Its id may have been overwritten by whoever wants the lock back; who
// has another id is another claim.
func (n *node) same(r Reply) bool {
	if n.czxid != 0 {
		return r.Czxid == n.czxid
	}
	return r.Owner == n.session && (carries(r.Data, n.id) || !bytes.Contains(r.Data, []byte(`"id":"`)))
}

// lookFixed reads the node lock's znode, behind the create, and leaves a watch
// on it, be it the claim's own or another's.
func (c *Core) lookFixed(p *place) {
	n := p.nodes[0]
	p.listing = true
	c.send(Request{Kind: Get, Path: n.path(), Watch: true}, func(now time.Duration, r Reply) {
		if p.over || p.claim.phase != working {
			if n.owner != nil && n.state == alive && r.Code == OK && !n.mine(r) {
				c.gone(now, n)
			}
			return
		}
		p.listing = false
		switch r.Code {
		case OK:
			c.foundFixed(now, p, r)
		case NoNode:
			if n.state == alive {
				c.gone(now, n)
			} else {
				c.makeFixed(p)
			}
		case Unknown, NotApplied:
			n.watched = false
			p.claim.retry(now + retryPause)
		case SessionOver:
		default:
			c.fail(now, p.claim, r.Err)
		}
	})
}

// foundFixed takes what was read of the znode.
func (c *Core) foundFixed(now time.Duration, p *place, r Reply) {
	n := p.nodes[0]
	switch {
	case n.mine(r):
		n.state, n.czxid = alive, r.Czxid
		n.watched, n.wantsWatch = true, true
		c.heed(p.claim, r.Data)
		c.clear(now, p)
		return
	case n.state == alive:
		c.gone(now, n)
		return
	}
	if r.Conn == n.tried {
		n.state = absent // whatever became of earlier creates: another has the name
	}
	if p.claim.spec.Try && !c.leavingFixed(p.parent, r) {
		c.fail(now, p.claim, ErrLocked)
		return
	}
	p.blocker = n.name
	p.claim.retry(now + c.lookAgain())
	c.tell(p, n.path(), 1, r.Data)
}

// leavingFixed reports whether what was read is a doomed znode of this client's.
func (c *Core) leavingFixed(parent string, r Reply) bool {
	for _, n := range c.doomed {
		if n.fixed && n.parent == parent && !n.refused && n.mine(r) {
			return true
		}
	}
	return false
}

// makeFixed tries again to make the znode.
func (c *Core) makeFixed(p *place) {
	n := p.nodes[0]
	n.state, n.czxid, n.session = creating, 0, c.session.Session
	p.blocker, p.wait = "", nil
	c.send(Request{Kind: Create, Creates: []Creation{{Path: n.path(), Data: withID(p.claim.spec.Data, n.id), Access: p.access}}},
		func(now time.Duration, r Reply) { c.created(now, p.nodes[:1:1], r) })
	c.lookFixed(p)
}

// proceedFixed looks again: at its own znode, or else by a create, which is also
// the write behind which a lost one has either been done or never will be.
func (c *Core) proceedFixed(now time.Duration, p *place) {
	if s := p.nodes[0].state; s == alive || s == absent && p.blocker != "" {
		c.lookFixed(p)
		return
	}
	c.makeFixed(p)
}

// eventFixed takes what a watch on the znode told.
func (c *Core) eventFixed(now time.Duration, p *place, kind EventKind) {
	n := p.nodes[0]
	switch {
	case n.state == alive && kind == Deleted:
		c.gone(now, n)
	case n.state == alive:
		c.doubt(n)
		c.watchOwn(n)
	case p.listing || n.state == creating:
	case kind == Deleted:
		c.makeFixed(p)
	default:
		c.lookFixed(p)
	}
}

// settleFixed finds out whether a doomed znode with a fixed name is there, and
// deletes it if it is this client's. The check is a write, behind which what
// this session sent before has been done or never will be.
func (c *Core) settleFixed(now time.Duration, n *node) {
	n.state = searching
	var conn uint64
	c.send(Request{Kind: Check, Paths: []string{n.path()}}, func(now time.Duration, r Reply) {
		if r.Code == OK || r.Code == NoNode {
			conn = r.Conn
		}
	})
	c.send(Request{Kind: Get, Path: n.path()}, func(now time.Duration, r Reply) {
		if n.state != searching {
			return
		}
		n.state = unknown
		proven := conn != 0 && conn == r.Conn
		switch {
		case proven && r.Code == OK && n.mine(r):
			n.state = alive
			c.dispose(now, n)
		case proven && (r.Code == OK || r.Code == NoNode):
			c.missing(n)
		case r.Code == SessionOver:
		case r.Code == Refused && n.czxid != 0:
			n.state = alive // it was, and may be deleted though not read: see searchData
			c.dispose(now, n)
		case r.Code == Refused:
			n.retryAt = now + c.refusedPause()
		default:
			n.retryAt = now + retryPause
		}
	})
}
