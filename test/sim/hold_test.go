package sim

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// hold is what a grant gave: open until it is released, given up or lost. It is
// over earlier if its client's deadline passes, by the client's own clock: then
// every look at it says so, even if the process is stopped and cannot look.
type hold struct {
	client  *client
	id      queue.ID
	want    *want
	parts   []*part
	session int64
	open    bool
	read    int  // of the client, in which it was granted
	handed  bool // by one of its client's own, whatever was read meanwhile
	since   time.Duration

	gone     bool // one of its znodes is
	goneAt   time.Duration
	brokenAt time.Duration // when it was released, if an operator had taken a znode away by then; else 0

	downgrade uint64 // the call under way
	swapped   bool   // it was downgraded, or that was tried
	watching  bool   // it wants to know of a revocation
	asked     bool   // it was asked to be given back
	told      bool   // and knows it
}

// A znode is one of a hold's.
type znode struct {
	path  string
	czxid int64
	next  string // the one that a downgrade under way puts in its stead
}

// key names a znode uniquely: names without a GUID are used again.
func key(path string, czxid int64) string { return path + "#" + strconv.FormatInt(czxid, 16) }

// there reports whether the znode is on the server, or its successor.
func (n *znode) there(w *World) bool {
	if _, stat, ok := w.server.tree.Get(n.path); ok && (n.czxid == 0 || stat.Czxid == n.czxid) {
		return true
	}
	return n.next != "" && w.there(n.next)
}

// operatedOn reports whether an operator took it away, or made its like delete
// it.
func (w *World) operatedOn(n *znode) bool {
	if w.server.tree != nil && w.lockOf(n.path).amiss > w.now && !n.there(w) {
		return true
	}
	return w.operated[key(n.path, n.czxid)] || n.czxid == 0 && w.operated[n.path] || n.next != "" && w.operated[n.next]
}

// operated reports whether an operator took one of the hold's znodes away.
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

// missing returns a znode of the hold's that is not on the server.
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

// node is the path of the first of its znodes.
func (h *hold) node() string { return h.parts[0].nodes[0].path }

// remaining is how long the hold is safe by the client's own clock now.
func (h *hold) remaining() time.Duration {
	at, ok := h.client.core.Deadline()
	if !ok || !h.client.alive {
		return 0
	}
	return max(0, at-h.client.clockNow())
}

// safe reports whether a look at the hold would say that it is held.
func (h *hold) safe() bool { return h.open && h.remaining() > 0 }

// newHold is a grant in the world's terms.
func (a *actor) newHold(s queue.Signal) *hold {
	w, c := a.world(), a.client
	h := &hold{client: c, id: s.ID, want: a.wanted, parts: a.wanted.parts, session: s.Session, open: true, read: c.reads, handed: c.giving, since: w.now}
	i := 0
	for _, p := range h.parts {
		p.nodes = nil
		for range p.size() {
			if i >= len(s.Nodes) || i >= len(s.Tokens) {
				w.fail("%s: granted with znodes %v for %+v", c.name, s.Nodes, h.want.spec)
				return nil
			}
			n := &znode{path: s.Nodes[i], czxid: s.Tokens[i]}
			p.nodes = append(p.nodes, n)
			i++
		}
		p.token = s.Tokens[i-p.size()]
	}
	if i != len(s.Nodes) || s.Node != s.Nodes[0] {
		w.fail("%s: granted with znodes %v for %+v", c.name, s.Nodes, h.want.spec)
		return nil
	}
	w.checkSignal(h, s)
	return h
}

// checkSignal checks that there is one token for all that were joined at once,
// and none where there can't be.
func (w *World) checkSignal(h *hold, s queue.Signal) {
	if h.want.spec.InOrder {
		if s.Token != 0 {
			w.fail("%s granted in order with one token %#x", h.node(), s.Token)
		}
		return
	}
	for i, p := range h.parts {
		// Of a claim with members, the semaphores have tokens of their own.
		if p.token != s.Token && (p.lock.Family != semaphores || i == 0) {
			w.fail("%s granted with token %#x, but %#x of %s", h.node(), s.Token, p.token, p.lock.Path)
		}
	}
}

// checkNodes looks, after the server has changed something, whether the znodes
// of every hold are there.
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
			case !h.open: // released, or lost: this is how it goes
			case operator || w.operatedOn(n):
				w.operated[key(n.path, n.czxid)] = true
				w.expectLoss(h)
			case h.safe():
				w.fail("the znode of %s's %s is gone while the hold is safe for %v more", c.name, n.path, h.remaining())
			}
		}
	}
}

// expectLoss checks that a hold whose znode an operator took away is lost in time, if
// nothing else is amiss: within a round trip once its znodes are watched, and within an
// eighth of the timeout and a round trip before that.
func (w *World) expectLoss(h *hold) {
	c, at := h.client, w.now
	if !c.undisturbed() || !h.safe() || w.bannedAny(h.parts, w.now) {
		return
	}
	const watched = 110 * time.Millisecond // after the grant, by a clock that may be slow
	// A request for a watch that was lost is sent again after as long.
	watchedBy := max(h.since+watched, w.disturbed+2*watched) + w.grace()
	limit := min(max(0, watchedBy-at), w.cfg.Timeout/8*102/100) + w.grace()
	w.after(limit, func() {
		if h.safe() && w.disturbed <= at && c.undisturbed() {
			w.fail("%s did not notice within %v that %s is gone", c.name, limit, h.node())
		}
	})
}

// checkRestart looks, after the server has started again, whether all holds are
// still there. A deletion that was not acknowledged may be undone.
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

// checkDeadline checks, after a step of the lock core, that no hold outlived
// its deadline, and forgets those that are over.
func (c *client) checkDeadline() {
	n := 0
	for _, h := range c.holds {
		if h.open && !c.stale && !h.safe() {
			c.world.fail("%s still holds %s past its deadline", c.name, h.node())
		}
		if h.open || c.questioned(h) {
			c.holds[n] = h
			n++
		}
	}
	clear(c.holds[n:])
	c.holds = c.holds[:n]
}

// questioned reports whether a verify of the hold is under way.
func (c *client) questioned(h *hold) bool {
	for _, v := range c.verifies {
		if v.hold == h {
			return true
		}
	}
	return false
}

// checkLoss checks that a loss has a reason, and that it was not known before
// the grant.
func (w *World) checkLoss(h *hold, why error) {
	switch {
	case !errors.Is(why, queue.ErrGone):
	case !h.gone && w.server.tree != nil:
		w.fail("%s lost for its znode, which is there", h.node())
	case !h.handed && h.read == h.client.reads && h.client.now == h.client.clock.read(w.now):
		w.fail("%s granted although the same read told that its znode is gone", h.node())
	}
}
