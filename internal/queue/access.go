package queue

import (
	"slices"
	"time"
)

// Access is the access control for znodes created below a parent. Only the driver knows
// its content; nil is the default.
type Access any

// maxAccess is the number of znodes whose Access the core remembers.
const maxAccess = 1024

// An inquiry reads the Access of the parents of the znodes that an acquire creates.
type inquiry struct {
	session int64
	left    int  // requests without an answer
	counted bool // it counts in the backlog
	failed  bool
	found   map[string]Access // of the znodes that exist, by path
}

// inquire reports whether the acquire has to wait for the Access of its parents. The core
// remembers what it reads in a session, so only the first acquire below a znode waits.
func (c *Core) inquire(acq *acquire, positions []*position) bool {
	if !c.cfg.Inherit() {
		return false
	}
	acq.inquiry = nil // an older one must not create the positions again
	known := true
	for _, p := range positions {
		access, ok := c.accessTo(acq, p.parent)
		p.access, p.inherits = access, true
		known = known && ok
	}
	if known {
		return false
	}
	if len(acq.positions) == 0 {
		acq.phase = parked
	}
	acq.retryingStep = len(acq.positions) > 0
	q := &inquiry{session: c.session.Session, found: map[string]Access{}}
	if acq.counts {
		c.backlog.count(&q.counted)
	}
	acq.inquiry = q
	asked := map[string]bool{}
	for _, dir := range acq.spec.parents() {
		for at := dir; ; at = parentOf(at) {
			if !asked[at] {
				asked[at] = true
				c.askAccess(acq, q, at)
			}
			if at == "" {
				break
			}
		}
	}
	return true
}

// askAccess requests the Access of one znode; the empty path is the root.
func (c *Core) askAccess(acq *acquire, q *inquiry, dir string) {
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
		if q.left--; q.left > 0 {
			return
		}
		c.backlog.answered(&q.counted, q.session, c.session.Session)
		if acq.inquiry != q || acq.phase == done {
			return
		}
		acq.inquiry = nil
		switch {
		case q.failed:
			acq.retry(now + retryPause)
		case c.connected(): // otherwise the next connection continues
			c.learned(acq, q)
			c.enqueue(now, acq)
		}
	})
}

// learned stores the result of an inquiry. For a znode that does not exist yet, the nearest
// existing ancestor counts, but only for this acquire: another client may create the znode.
func (c *Core) learned(acq *acquire, q *inquiry) {
	acq.access = map[string]Access{}
	for _, dir := range acq.spec.parents() {
		at := dir
		access, ok := q.found[at]
		for !ok && at != "" {
			at = parentOf(at)
			access, ok = q.found[at]
		}
		acq.access[dir] = access
		if ok && at == dir {
			c.remember(dir, access)
		}
	}
}

// remember keeps the Access of a znode for later acquires of this session.
func (c *Core) remember(dir string, access Access) {
	if c.access == nil || len(c.access) >= maxAccess {
		c.access = map[string]Access{}
	}
	c.access[dir] = access
}

// accessTo returns the Access of a znode, and whether it is known.
func (c *Core) accessTo(acq *acquire, dir string) (Access, bool) {
	if access, ok := c.access[dir]; ok {
		return access, true
	}
	access, ok := acq.access[dir]
	return access, ok
}

// disown forgets the Access of the parents of znodes that could not be created. The
// parents are gone, or their ACLs have changed.
func (c *Core) disown(nodes []*node) {
	for _, n := range nodes {
		if n.position != nil {
			delete(c.access, n.position.parent)
		}
	}
}

// outdated reports whether a create found a parent missing whose Access the acquire did
// not read for this create. The ancestors may have been replaced or have other ACLs, so
// the acquire must not create the parent with the Access of the former one.
func (c *Core) outdated(acq *acquire, nodes []*node) bool {
	return c.cfg.Inherit() && slices.ContainsFunc(nodes, func(n *node) bool {
		if n.position == nil {
			return false
		}
		_, read := acq.access[n.position.parent]
		return !read
	})
}

// parents returns the parents of the acquire's entries. Records are created next to the
// lock's znode, with the lock's Access.
func (s *Spec) parents() []string {
	if s.Node != "" {
		return []string{parentOf(s.Node)}
	}
	var all []string
	for _, m := range s.Members {
		all = append(all, m.Path)
	}
	for i := range s.Semaphores {
		all = append(all, GatePath(s.Semaphores[i].Path), LeasesPath(s.Semaphores[i].Path))
	}
	return all
}
