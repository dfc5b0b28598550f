package sim

import (
	"errors"
	"path"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// hold is what a grant gave: open until it is released, given up or lost. It is
// over earlier if its client's deadline passes, by the client's own clock: then
// every look at it says so, even if the process is stopped and cannot look.
type hold struct {
	client *client
	id     queue.ID
	lock   *lock
	node   string
	token  int64
	open   bool
	read   int // of the client, in which it was granted

	gone   bool // its znode is
	goneAt time.Duration
}

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

// checkGrant checks a new hold against all others, and against the server.
func (w *World) checkGrant(h *hold) {
	if w.server.tree != nil {
		if _, _, there := w.server.tree.Get(h.node); !there {
			h.gone, h.goneAt = true, w.now
		}
	}
	if !h.safe() {
		return // granted by a clock read before a pause: the first look says lost
	}
	if w.operated[h.node] {
		return
	}
	for c := range w.clients {
		for _, o := range c.holds {
			if o != h && o.lock == h.lock && o.safe() && !w.operated[o.node] {
				w.fail("%s granted %s to %s while %s holds %s, safe for %v more", h.lock.path, h.node, h.client.name,
					c.name, o.node, o.remaining())
			}
		}
	}
	if h.token <= h.lock.maxToken {
		w.fail("%s granted with token %#x after %#x of %s", h.node, h.token, h.lock.maxToken, h.lock.last)
	}
	h.lock.maxToken, h.lock.last = h.token, h.node
	if w.server.tree == nil {
		return
	}
	// A grant may come late, but never early: all that was ahead is gone.
	if head := w.head(h.lock); head != h.node {
		w.fail("%s granted while %q is the first on the server", h.node, head)
	}
}

// head is the first znode of a lock's queue on the server.
func (w *World) head(l *lock) (first string) {
	for _, p := range w.server.tree.Paths() {
		if !isEntry(p) || path.Dir(p) != l.path {
			continue
		}
		if first == "" || p[len(p)-10:] < first[len(first)-10:] {
			first = p
		}
	}
	return first
}

// isEntry reports whether a path is a contender's.
func isEntry(p string) bool { return strings.Contains(p, "-lock-") }

// checkNodes looks, after the server has changed something, whether the znode
// of every hold is there.
func (w *World) checkNodes(operator bool) {
	for c := range w.clients {
		for _, h := range c.holds {
			if _, _, there := w.server.tree.Get(h.node); there || h.gone {
				continue
			}
			h.gone, h.goneAt = true, w.now
			switch {
			case !h.open: // released, or lost: this is how it goes
			case operator || w.operated[h.node]:
				w.operated[h.node] = true
				w.expectLoss(h)
			case h.safe():
				w.fail("the znode of %s's %s is gone while the hold is safe for %v more", c.name, h.node, h.remaining())
			}
		}
	}
}

// expectLoss checks that a hold whose znode an operator took away is lost within
// an eighth of the timeout and a round trip, if nothing else is amiss.
func (w *World) expectLoss(h *hold) {
	c, at := h.client, w.now
	if !c.undisturbed() || !h.safe() {
		return
	}
	limit := w.cfg.Timeout/8*102/100 + w.grace()
	w.after(limit, func() {
		if h.safe() && w.disturbed <= at && c.undisturbed() {
			w.fail("%s did not notice within %v that %s is gone", c.name, limit, h.node)
		}
	})
}

// checkRestart looks, after the server has started again, whether all holds are
// still there. A deletion that was not acknowledged may be undone.
func (w *World) checkRestart() {
	for c := range w.clients {
		for _, h := range c.holds {
			if _, _, there := w.server.tree.Get(h.node); there {
				h.gone = false
			} else if !h.gone && h.safe() && !w.operated[h.node] {
				w.fail("the znode of %s's %s is gone after a restart", c.name, h.node)
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
			c.world.fail("%s still holds %s past its deadline", c.name, h.node)
		}
		if h.open || c.asked(h) {
			c.holds[n] = h
			n++
		}
	}
	clear(c.holds[n:])
	c.holds = c.holds[:n]
}

// asked reports whether a verify of the hold is under way.
func (c *client) asked(h *hold) bool {
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
		w.fail("%s lost for its znode, which is there", h.node)
	case h.read == h.client.reads && h.client.now == h.client.clock.read(w.now):
		w.fail("%s granted although the same read told that its znode is gone", h.node)
	}
}
