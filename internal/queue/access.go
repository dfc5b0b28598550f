package queue

import (
	"slices"
	"time"
)

// Access says who may use the znodes that are made below some znode. Only the driver
// knows what is in it; nil is what znodes are made with where nothing is known.
type Access any

// maxAccess bounds for how many znodes the core remembers the Access.
const maxAccess = 1024

// An inquiry reads who may use the znodes that a claim is about to make others below.
type inquiry struct {
	left   int // requests that are not answered
	failed bool
	found  map[string]Access // of the znodes that exist, by path
}

// inquire reports whether the claim has to wait for the Access of its parents. The
// core remembers what it has read in this session, so that only the first claim below
// a znode waits.
func (c *Core) inquire(cl *claim, places []*place) bool {
	if !c.cfg.Inherit {
		return false
	}
	cl.inquiry = nil // an older one must not make the places once more
	known := true
	for _, p := range places {
		access, ok := c.accessTo(cl, p.parent)
		p.access = access
		known = known && ok
	}
	if known {
		return false
	}
	if len(cl.places) == 0 {
		cl.phase = parked
	}
	cl.retaking = len(cl.places) > 0
	q := &inquiry{found: map[string]Access{}}
	cl.inquiry = q
	asked := map[string]bool{}
	for _, dir := range cl.spec.parents() {
		for at := dir; ; at = parentOf(at) {
			if !asked[at] {
				asked[at] = true
				c.askAccess(cl, q, at)
			}
			if at == "" {
				break
			}
		}
	}
	return true
}

// askAccess asks for the Access below one znode; the empty path is the root's.
func (c *Core) askAccess(cl *claim, q *inquiry, dir string) {
	q.left++
	path := dir
	if dir == "" {
		path = "/"
	}
	c.send(Request{Kind: ReadAccess, Path: path}, func(now time.Duration, r Reply) {
		switch r.Code {
		case OK, Refused, Unimplemented:
			q.found[dir] = r.Access
		case NoNode:
		default:
			q.failed = true
		}
		if q.left--; q.left > 0 || cl.inquiry != q || cl.phase == done {
			return
		}
		cl.inquiry = nil
		switch {
		case q.failed:
			cl.retry(now + retryPause)
		case c.connected(): // else the next connection goes on
			c.learned(cl, q)
			c.join(now, cl)
		}
	})
}

// learned takes what an inquiry found. Below a znode that does not exist yet, the
// nearest one above it counts, for this claim alone: somebody else may make it.
func (c *Core) learned(cl *claim, q *inquiry) {
	cl.access = map[string]Access{}
	for _, dir := range cl.spec.parents() {
		at := dir
		access, ok := q.found[at]
		for !ok && at != "" {
			at = parentOf(at)
			access, ok = q.found[at]
		}
		cl.access[dir] = access
		if ok && at == dir {
			c.remember(dir, access)
		}
	}
}

// remember keeps the Access below a znode for later claims of this session.
func (c *Core) remember(dir string, access Access) {
	if c.access == nil || len(c.access) >= maxAccess {
		c.access = map[string]Access{}
	}
	c.access[dir] = access
}

// accessTo returns the Access below a znode, and whether it is known.
func (c *Core) accessTo(cl *claim, dir string) (Access, bool) {
	if access, ok := c.access[dir]; ok {
		return access, true
	}
	access, ok := cl.access[dir]
	return access, ok
}

// disown forgets the Access below the parents of znodes that could not be made: they
// are gone, or their lists have changed.
func (c *Core) disown(nodes []*node) {
	for _, n := range nodes {
		if n.place != nil {
			delete(c.access, n.place.parent)
		}
	}
}

// outdated reports whether a create found a parent missing whose Access the claim did
// not read for this create. The znodes above may be others by now, or may have other
// lists, so that it must not make the parent with what it knew of the former one.
func (c *Core) outdated(cl *claim, nodes []*node) bool {
	return c.cfg.Inherit && slices.ContainsFunc(nodes, func(n *node) bool {
		if n.place == nil {
			return false
		}
		_, read := cl.access[n.place.parent]
		return !read
	})
}

// parents are the znodes below which the claim makes its entries. Records are made
// beside the lock's znode, and are for those who may use the lock.
func (s *Spec) parents() []string {
	if s.Node != "" {
		return []string{parentOf(s.Node)}
	}
	var all []string
	for _, m := range s.Members {
		all = append(all, m.Path)
	}
	for i := range s.Semaphores {
		all = append(all, s.Semaphores[i].Path+"/locks", s.Semaphores[i].Path+"/leases")
	}
	return all
}
