package sim

import (
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/wire"
)

// watch makes the holder watch for release requests, and sometimes makes one.
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

// revoke writes a release request into an entry, in the format of one of the libraries.
func (w *World) revoke(p string, h *hold) {
	words := []string{"__REVOKE__", "unlock", `{"revoke":true,"host":"x"}`}
	word := words[w.rng.IntN(len(words))]
	w.operatorDoes(func() {
		data, _, ok := w.server.tree.Get(p)
		if !ok || string(data) != word {
			return
		}
		w.note("release request in %s", p)
		w.Stats.Revoked++
		w.revoked[p] = true
		if l := w.lockOf(p); l.Family == semaphores && strings.HasPrefix(p, l.dirs[0]) {
			l.gateRevoked = true
		}
		w.noteTaint(p, data)
		if h != nil && h.open {
			h.requested = true
			w.expectRevoked(h, p, word)
		}
	}, request(wire.OpSetData, &wire.SetDataRequest{Path: p, Data: []byte(word), Version: -1}))
}

// noteTaint notes an entry whose data does not show its owner.
func (w *World) noteTaint(p string, data []byte) {
	if l := w.lockOf(p); l != nil && len(data) > 0 && data[0] != '{' {
		l.taints = append(l.taints, taint{path: p})
	}
}

// expectRevoked checks that a watching holder soon receives a release request, unless there
// is a fault or the request was overwritten.
func (w *World) expectRevoked(h *hold, p, word string) {
	c, at := h.client, w.now
	if !c.undisturbed() || w.bannedAny(h.parts, w.now) {
		return
	}
	limit := 3 * w.grace()
	w.after(limit, func() {
		if !h.safe() || !h.watching || h.notified || w.disturbed > at || !c.undisturbed() {
			return
		}
		// A later downgrade keeps the request in the new entry.
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
		w.fail("%s: release request for %s, which it does not watch", c.name, h.node())
	case h.notified:
		w.fail("%s: second notification of a release request for %s", c.name, h.node())
	}
	h.notified = true
	for _, p := range h.parts {
		if p.lock.gateRevoked {
			return // a waiter at a gate keeps its release request for the hold
		}
		for _, n := range p.nodes {
			if w.revoked[n.path] {
				return
			}
		}
	}
	if !h.swapped && !h.requested {
		w.fail("%s: release request for %s, which no client made", c.name, h.node())
	}
}
