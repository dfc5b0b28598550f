package sim

import (
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/wire"
)

// watch makes the holder wait for a release request, and sometimes makes one.
func (a *actor) watch(within time.Duration) {
	w, c := a.world(), a.client
	if a.state != holding || a.hold.watching {
		return
	}
	h := a.hold
	h.watching = true
	if w.oneIn(2) {
		nodes := h.parts[w.rng.IntN(len(h.parts))].nodes
		n := nodes[w.rng.IntN(len(nodes))]
		w.after(w.upTo(within), func() {
			if h.safe() && !h.operated() {
				w.revoke(n.path, h)
			}
		})
	}
	c.input(func(core *queue.Core) { core.Watch(c.now, a.id) })
}

// revoke writes into a znode of a lock's that it is to be given back, in the
// words of one library or another.
func (w *World) revoke(p string, h *hold) {
	words := []string{"__REVOKE__", "unlock", `{"revoke":true,"host":"x"}`}
	word := words[w.rng.IntN(len(words))]
	w.operatorDoes(func() {
		data, _, ok := w.server.tree.Get(p)
		if !ok || string(data) != word {
			return
		}
		w.note("%s is asked for", p)
		w.Stats.Revoked++
		w.revoked[p] = true
		if l := w.lockOf(p); l.Family == semaphores && strings.HasPrefix(p, l.dirs[0]) {
			l.gateAsked = true
		}
		w.taint(p, data)
		if h != nil && h.open {
			h.asked = true
			w.expectRevoked(h, p, word)
		}
	}, request(wire.OpSetData, &wire.SetDataRequest{Path: p, Data: []byte(word), Version: -1}))
}

// taint notes what a znode's data do not tell any more.
func (w *World) taint(p string, data []byte) {
	if l := w.lockOf(p); l != nil && len(data) > 0 && data[0] != '{' {
		l.taints = append(l.taints, taint{path: p})
	}
}

// expectRevoked checks that a holder that wants to know that it is asked to give
// the lock back does so soon, if nothing is amiss: the word may have been written
// over before it could be read.
func (w *World) expectRevoked(h *hold, p, word string) {
	c, at := h.client, w.now
	if !c.undisturbed() || w.bannedAny(h.parts, w.now) { // a client without read permission learns nothing
		return
	}
	limit := 3 * w.grace()
	w.after(limit, func() {
		if !h.safe() || !h.watching || h.told || w.disturbed > at || !c.undisturbed() {
			return
		}
		// A downgrade since then keeps the request in the reader's entry.
		data, _, ok := w.server.tree.Get(p)
		if ok && string(data) == word || !ok && h.swapped && !h.operated() {
			w.fail("%s has not received after %v the release request for %s", c.name, limit, h.node())
		}
	})
}

// revokedSignal checks that a release request was made.
func (c *client) revokedSignal(h *hold) {
	if h == nil || !h.open {
		return
	}
	w := c.world
	switch {
	case !h.watching:
		w.fail("%s: told that %s is asked for, which it does not want to know", c.name, h.node())
	case h.told:
		w.fail("%s: told twice that %s is asked for", c.name, h.node())
	}
	h.told = true
	for _, p := range h.parts {
		if p.lock.gateAsked {
			return // a waiter at a gate keeps the release request
		}
		for _, n := range p.nodes {
			if w.revoked[n.path] {
				return
			}
		}
	}
	if !h.swapped && !h.asked {
		w.fail("%s: told that %s is asked for, which it is not", c.name, h.node())
	}
}
