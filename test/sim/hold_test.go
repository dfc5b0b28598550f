package sim

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// hold is a granted hold. It is open until it is released, canceled, or lost. It also ends
// when its deadline passes by the client's clock, even if the process is stopped.
type hold struct {
	client  *client
	id      queue.ID
	claim   *claim
	parts   []*part
	session int64
	open    bool
	read    int  // the client's read that led to the grant
	handed  bool // the same client handed the lock over
	since   time.Duration

	gone     bool // one of its znodes is gone
	goneAt   time.Duration
	brokenAt time.Duration // when it was released after an operator deleted a znode, or 0

	downgrade uint64 // the call in flight, or 0
	swapped   bool   // a downgrade was attempted
	watching  bool   // it waits for release requests
	requested bool   // a release request was made
	notified  bool   // it received the release request
}

// A znode is a znode of a hold.
type znode struct {
	path  string
	czxid int64
	next  string // its replacement in a downgrade in flight
}

// key returns a unique name of a znode. Names without a GUID are reused.
func key(path string, czxid int64) string { return path + "#" + strconv.FormatInt(czxid, 16) }

// there reports whether the znode or its replacement is on the server.
func (n *znode) there(w *World) bool {
	if _, stat, ok := w.server.tree.Get(n.path); ok && (n.czxid == 0 || stat.Czxid == n.czxid) {
		return true
	}
	return n.next != "" && w.there(n.next)
}

// operatedOn reports whether an operator deleted a znode, or may have made another client
// delete it.
func (w *World) operatedOn(n *znode) bool {
	if w.server.tree != nil && w.lockOf(n.path).wrongDeletes > w.now && !n.there(w) {
		return true
	}
	return w.operated[key(n.path, n.czxid)] || n.czxid == 0 && w.operated[n.path] || n.next != "" && w.operated[n.next]
}

// operated reports whether an operator deleted a znode of the hold.
func (h *hold) operated() bool {
	for _, p := range h.parts {
		for _, n := range p.nodes {
			if h.client.world.operatedOn(n) {
				return true
			}
		}
	}
	return false
}

// missing returns a znode of the hold that is not on the server.
func (h *hold) missing() *znode {
	for _, p := range h.parts {
		for _, n := range p.nodes {
			if !n.there(h.client.world) {
				return n
			}
		}
	}
	return nil
}

// node returns the path of the first znode.
func (h *hold) node() string { return h.parts[0].nodes[0].path }

// remaining returns the time until the deadline by the client's clock.
func (h *hold) remaining() time.Duration {
	at, ok := h.client.core.Deadline()
	if !ok || !h.client.alive {
		return 0
	}
	return max(0, at-h.client.clockNow())
}

// safe reports whether a check of the hold would succeed.
func (h *hold) safe() bool { return h.open && h.remaining() > 0 }

// newHold returns the hold of a grant.
func (a *actor) newHold(s queue.Signal) *hold {
	w, c := a.world(), a.client
	h := &hold{client: c, id: s.ID, claim: a.claim, parts: a.claim.parts, session: s.Session, open: true, read: c.reads, handed: c.inRelease, since: w.now}
	i := 0
	for _, p := range h.parts {
		p.nodes = nil
		for range p.size() {
			if i >= len(s.Nodes) || i >= len(s.Tokens) {
				w.fail("%s: granted with znodes %v for %+v", c.name, s.Nodes, h.claim.spec)
				return nil
			}
			n := &znode{path: s.Nodes[i], czxid: s.Tokens[i]}
			p.nodes = append(p.nodes, n)
			i++
		}
		p.token = s.Tokens[i-p.size()]
	}
	if i != len(s.Nodes) || s.Node != s.Nodes[0] {
		w.fail("%s: granted with znodes %v for %+v", c.name, s.Nodes, h.claim.spec)
		return nil
	}
	w.checkSignal(h, s)
	return h
}

// checkSignal checks that all queues of a claim have one token, and that a claim in order
// has none.
func (w *World) checkSignal(h *hold, s queue.Signal) {
	if h.claim.spec.InOrder {
		if s.Token != 0 {
			w.fail("%s granted in order with one token %#x", h.node(), s.Token)
		}
		return
	}
	for i, p := range h.parts {
		// If a claim has queues, its semaphores have their own tokens.
		if p.token != s.Token && (p.lock.Family != semaphores || i == 0) {
			w.fail("%s granted with token %#x, but %#x of %s", h.node(), s.Token, p.token, p.lock.Path)
		}
	}
}

// checkNodes checks after a change on the server that the znodes of every hold exist.
func (w *World) checkNodes(operator bool) {
	w.checkTaints()
	w.checkTraces()
	w.checkResources()
	for c := range w.clients {
		for _, h := range c.holds {
			if h.gone {
				continue
			}
			n := h.missing()
			if n == nil {
				continue
			}
			h.gone, h.goneAt = true, w.now
			switch {
			case !h.open: // released or lost
			case operator || w.operatedOn(n):
				w.operated[key(n.path, n.czxid)] = true
				w.expectLoss(h)
			case h.safe():
				w.fail("the znode of %s's %s is gone while the hold is safe for %v more", c.name, n.path, h.remaining())
			}
		}
	}
}

// expectLoss checks that a hold is lost in time after an operator deletes its znode, if
// there is no fault: within a round trip if its znodes are watched, and otherwise within an
// eighth of the timeout and a round trip.
func (w *World) expectLoss(h *hold) {
	c, at := h.client, w.now
	if !c.undisturbed() || !h.safe() || w.bannedAny(h.parts, w.now) {
		return
	}
	const watched = 110 * time.Millisecond // after the grant, by a possibly slow clock
	// A lost request for a watch is sent again after the same time.
	watchedBy := max(h.since+watched, w.disturbed+2*watched) + w.grace()
	limit := min(max(0, watchedBy-at), w.cfg.Timeout/8*102/100) + w.grace()
	w.after(limit, func() {
		if h.safe() && w.disturbed <= at && c.undisturbed() {
			w.fail("%s did not notice within %v that %s is gone", c.name, limit, h.node())
		}
	})
}

// checkRestart checks after a restart of the server that the znodes of all holds exist. A
// deletion that was not acknowledged may be undone.
func (w *World) checkRestart() {
	w.strays = slices.DeleteFunc(w.strays, func(p string) bool { return !w.there(p) })
	w.checkTaints()
	w.checkTraces()
	for _, l := range w.locks {
		l.fenced = 0
	}
	w.checkResources()
	for c := range w.clients {
		for _, h := range c.holds {
			if h.missing() == nil {
				h.gone = false
			} else if !h.gone && h.safe() && !h.operated() {
				w.fail("the znode of %s's %s is gone after a restart", c.name, h.node())
			}
		}
	}
}

// checkDeadline checks after a step of the lock core that no hold has outlived its deadline,
// and removes ended holds.
func (c *client) checkDeadline() {
	n := 0
	for _, h := range c.holds {
		if h.open && !c.stale && !h.safe() {
			c.world.fail("%s still holds %s past its deadline", c.name, h.node())
		}
		if h.open || c.verifying(h) {
			c.holds[n] = h
			n++
		}
	}
	clear(c.holds[n:])
	c.holds = c.holds[:n]
}

// verifying reports whether a verify of the hold is in flight.
func (c *client) verifying(h *hold) bool {
	for _, v := range c.verifies {
		if v.hold == h {
			return true
		}
	}
	return false
}

// checkLoss checks that a loss has a reason, and that the client did not know it before the
// grant.
func (w *World) checkLoss(h *hold, why error) {
	switch {
	case !errors.Is(why, queue.ErrGone):
	case !h.gone && w.server.tree != nil:
		w.fail("%s lost for its znode, which is there", h.node())
	case !h.handed && h.read == h.client.reads && h.client.now == h.client.clock.read(w.now):
		w.fail("%s granted although the same read told that its znode is gone", h.node())
	}
}
