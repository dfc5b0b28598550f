package queue

import (
	"bytes"
	"slices"
	"time"
)

// A node lock is one ephemeral znode with a fixed name. The client that creates it holds
// the lock. The other clients watch it and try again when it is deleted, in no order. The
// name does not identify the acquire, so the data contain the acquire's id. After a lost
// answer the client reads the znode: one of this session with this id is its own.

// withID puts an id in front of a znode's data, a JSON object or nothing.
func withID(data []byte, id string) []byte {
	out := []byte(`{"id":"` + id + `"`)
	rest := bytes.TrimPrefix(data, []byte("{"))
	if len(rest) == 0 || rest[0] == '}' {
		return append(out, '}')
	}
	return append(append(out, ','), rest...)
}

// carries reports whether a znode's data contain this id, perhaps after a release
// request.
func carries(data []byte, id string) bool {
	return bytes.Contains(data, []byte(`"id":"`+id+`"`))
}

// mine reports whether a Get read this very znode.
func (n *node) mine(r Reply) bool {
	if n.czxid != 0 {
		return r.Czxid == n.czxid
	}
	if n.named == byGUID { // which the name has
		return r.Owner == n.session
	}
	return r.Owner == n.session && carries(r.Data, n.id)
}

// same reports whether a Get read the znode n, which was known to exist under its name. A
// release request may have overwritten its id. Another id means another acquire.
func (n *node) same(r Reply) bool {
	if n.czxid != 0 {
		return r.Czxid == n.czxid
	}
	return r.Owner == n.session && (carries(r.Data, n.id) || !bytes.Contains(r.Data, []byte(`"id":"`)))
}

// isOwn reports whether a Get of this child read the znode n. While the create of n has no
// answer, a release request of another library may have overwritten its id. Then a znode of
// this session is n unless it is another one of this client, or of another user of the session.
func (c *Core) isOwn(n *node, name string, r Reply) bool {
	if n.mine(r) {
		return true
	}
	if n.owner == nil && n.unsure && r.Owner == n.session && carries(r.Data, n.id) {
		return true // an earlier create of a pending delete was applied after a later one
	}
	if n.czxid != 0 || r.Owner != n.session || !c.cfg.OwnSession || bytes.Contains(r.Data, []byte(`"id":"`)) {
		return false
	}
	another := func(o *node) bool { return o != n && o.parent == n.parent && o.name == name && o.state != absent }
	return !slices.ContainsFunc(c.pendingDeletes, another) && !slices.ContainsFunc(c.acquires, func(acq *acquire) bool {
		return slices.ContainsFunc(acq.nodes(), another) || acq.swap != nil && slices.ContainsFunc(acq.swap.news, another)
	})
}

// maxMissed is how often in a row an acquire tries again at once after a create that found the
// znode and a read that did not. Another client may have deleted it in between; a server that
// always answers so must cause no storm.
const maxMissed = 8

// readFixed reads the node lock's znode after the create, and sets a watch on it whether
// or not it is the acquire's own.
func (c *Core) readFixed(p *position) {
	n := p.nodes[0]
	p.query = reading
	c.send(Request{Kind: Get, Path: n.path(), Watch: true}, func(now time.Duration, r Reply) {
		if p.membership != present || p.acquire.phase != working {
			if n.owner != nil && n.state == alive && r.Code == OK && !n.mine(r) {
				c.gone(now, n)
			}
			return
		}
		p.query = idle
		switch r.Code {
		case OK:
			c.foundFixed(now, p, r)
		case NoNode:
			switch {
			case n.state == alive:
				c.gone(now, n)
			case n.missed < maxMissed:
				n.missed++
				c.makeFixed(now, p)
			default:
				p.acquire.retry(now + retryPause)
			}
		case Unknown, NotApplied:
			n.watch.fail()
			p.acquire.retry(now + retryPause)
		case SessionOver:
		default:
			c.fail(now, p.acquire, r.Err)
		}
	})
}

// foundFixed handles a successful read of the znode.
func (c *Core) foundFixed(now time.Duration, p *position, r Reply) {
	n := p.nodes[0]
	n.missed = 0
	switch {
	case c.isOwn(n, n.name, r):
		n.state, n.czxid = alive, r.Czxid
		c.queues[p.parent].enter(p)
		n.watch = ownAnswered
		c.read(n, r)
		c.clear(now, p)
		return
	case n.state == alive:
		c.gone(now, n)
		return
	}
	if r.Conn == n.tried && r.Sent >= c.unsettledUntil { // otherwise an earlier create can still succeed
		n.state = absent // no earlier create has succeeded: another client has the name
	}
	if p.acquire.spec.Try && !c.isPendingDeleteFixed(p.parent, r) {
		c.failLocked(now, p.acquire, n.path())
		return
	}
	c.block(p, blocker{name: n.name, watch: watchRequested})
	c.watches(p, false)
	p.acquire.retry(now + c.recheckDelay())
	c.signalWaiting(p, n.path(), 1, r.Data)
}

// isPendingDeleteFixed reports whether a Get read one of this client's pending deletes.
func (c *Core) isPendingDeleteFixed(parent string, r Reply) bool {
	for _, n := range c.pendingDeletes {
		if n.fixed && n.parent == parent && !n.refused && n.mine(r) {
			return true
		}
	}
	return false
}

// makeFixed tries again to create the znode. If the core did not read the Access of its parent
// when the acquire began, but does so now, the acquire begins again.
func (c *Core) makeFixed(now time.Duration, p *position) {
	if !p.inherits && c.cfg.Inherit() {
		c.park(now, p.acquire)
		c.enqueue(now, p.acquire)
		return
	}
	n := p.nodes[0]
	n.state, n.czxid, n.session = creating, 0, c.session.Session
	c.block(p, blocker{})
	p.told = ""
	c.send(Request{Kind: Create, Creates: []Creation{{Path: n.path(), Data: withID(p.acquire.spec.Data, n.id), Access: p.access}}},
		func(now time.Duration, r Reply) { c.created(now, p.nodes[:1:1], r) })
	c.readFixed(p)
}

// proceedFixed looks again: at its own znode, or else by a create, which is also
// the write behind which a lost one has either been done or never will be.
func (c *Core) proceedFixed(now time.Duration, p *position) {
	if s := p.nodes[0].state; s == alive || s == absent && p.blocker.name != "" {
		c.readFixed(p)
		return
	}
	c.makeFixed(now, p)
}

// eventFixed takes what a watch on the znode told.
func (c *Core) eventFixed(now time.Duration, p *position, kind EventKind) {
	n := p.nodes[0]
	switch {
	case n.state == alive && kind == Deleted:
		c.gone(now, n)
	case n.state == alive:
		c.doubt(n)
		c.watchOwn(n)
	case p.query != idle || n.state == creating:
	case kind == Deleted:
		c.makeFixed(now, p)
	default:
		c.readFixed(p)
	}
}

// probeFixed finds out whether a pending delete with a fixed name exists, and deletes it
// if it is this client's. The check is a write: after it, earlier requests of this session
// are either applied or never will be.
func (c *Core) probeFixed(n *node) {
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
		case proven && r.Code == OK && c.isOwn(n, n.name, r):
			n.state = alive
			c.dispose(r.Sent, n)
		case proven && (r.Code == OK || r.Code == NoNode):
			c.missing(n)
		case r.Code == SessionOver:
		case r.Code == Refused && n.czxid != 0:
			n.state = alive // it was created, and the client may be allowed to delete it but not to read it: see searchData
			c.dispose(r.Sent, n)
		case r.Code == Refused:
			c.retryDelete(n, now+c.refusedPause())
		default:
			c.retryDelete(n, now+retryPause)
		}
	})
}
