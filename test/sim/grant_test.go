package sim

import "slices"

// checkGrant checks a new hold against all other holds and the server.
func (w *World) checkGrant(h *hold) {
	if w.server.tree != nil && h.missing() != nil {
		h.gone, h.goneAt = true, w.now
	}
	if !h.safe() {
		return // the clock was read before a pause: the first check reports the loss
	}
	if h.operated() {
		return
	}
	for _, p := range h.parts {
		w.checkConflict(h, p)
		w.checkToken(h, p)
		w.checkDelay(h, p)
		w.checkNumber(h, p)
	}
	if w.server.tree == nil {
		return
	}
	if n := h.missing(); n != nil {
		w.fail("%s granted while %s is not on the server", h.node(), n.path)
	}
	for _, p := range h.parts {
		w.checkOwner(h, p)
		w.checkAhead(h, p)
	}
}

// checkConflict checks that no other hold conflicts with a new one.
func (w *World) checkConflict(h *hold, p *part) {
	permits, of := p.permits, p.of
	for c := range w.clients {
		for _, o := range c.holds {
			if o == h || !o.safe() || o.operated() {
				continue
			}
			for _, q := range o.parts {
				switch {
				case q.lock != p.lock:
				case p.lock.Family == semaphores:
					permits += q.permits
					of = max(of, q.of)
					if q.of != p.of && w.now > p.lock.gateOpen {
						w.fail("%s granted %s, one of %d, while %s holds %s, one of %d", h.client.name, p.nodes[0].path, p.of,
							c.name, q.nodes[0].path, q.of)
					}
				case p.shared && (q.shared || o.downgrade != 0 && w.downgradeDone(q)):
				default:
					w.fail("%s granted %s to %s while %s holds %s, safe for %v more", p.lock.Path, p.nodes[0].path, h.client.name,
						c.name, q.nodes[0].path, o.remaining())
				}
			}
		}
	}
	if permits > of {
		w.fail("%s granted %s to %s: %d permits of %d are held", p.lock.Path, p.nodes[0].path, h.client.name, permits, of)
	}
}

// downgradeDone reports whether the server has done a downgrade without a known result.
func (w *World) downgradeDone(p *part) bool {
	return w.server.tree == nil || p.nodes[0].next != "" && w.there(p.nodes[0].next)
}

// checkToken checks that the token is larger than those of earlier conflicting holds.
func (w *World) checkToken(h *hold, p *part) {
	l := p.lock
	switch {
	case l.Family == semaphores && !p.exclusive():
		return
	case p.shared && p.token <= l.written:
		w.fail("%s granted with token %#x after %#x of an exclusive hold", p.nodes[0].path, p.token, l.written)
	case !p.shared && p.token <= l.maxToken:
		w.fail("%s granted with token %#x after %#x of %s", p.nodes[0].path, p.token, l.maxToken, l.last)
	}
	if p.token > l.maxToken {
		l.maxToken, l.last = p.token, p.nodes[0].path
	}
	if !p.shared {
		l.written = p.token
	}
}

// checkOwner checks that the session of a new hold owns its znodes.
func (w *World) checkOwner(h *hold, p *part) {
	for _, n := range p.nodes {
		if _, stat, _ := w.server.tree.Get(n.path); stat.EphemeralOwner != h.session {
			w.fail("%s granted to %s, but it is session %#x's", n.path, h.client.name, stat.EphemeralOwner)
		}
	}
}

// checkAhead checks that no conflicting entry on the server is ahead of a new hold.
func (w *World) checkAhead(h *hold, p *part) {
	own := map[string]bool{}
	first, last := "", ""
	for _, n := range p.nodes {
		own[n.path] = true
		seq, _, _ := p.lock.entry(n.path)
		if first == "" || seq < first {
			first = seq
		}
		last = max(last, seq)
	}
	if p.lock.Family == nodeLocks {
		return
	}
	dir := p.lock.dirs[len(p.lock.dirs)-1]
	leases := 0
	for _, path := range w.server.tree.Paths() {
		seq, shared, ok := p.lock.entry(path)
		if !ok || path[:len(dir)] != dir {
			continue
		}
		switch {
		case p.lock.Family == semaphores:
			// Later leases wait for this one.
			if seq <= last {
				leases++
			}
		case !own[path] && seq <= first && !(p.shared && shared) && !h.client.gaveUp(path):
			w.fail("%s granted while %q is ahead on the server", p.nodes[0].path, path)
		}
	}
	if leases > p.of && p.lock.Family == semaphores {
		w.fail("%s granted while there are %d leases of %d up to it on the server", p.nodes[0].path, leases, p.of)
	}
}

// gaveUp reports whether an entry on the server belongs to this client, and to none of its
// acquires. The client need not wait for such an entry.
func (c *client) gaveUp(path string) bool {
	_, stat, ok := c.world.server.tree.Get(path)
	if !ok || stat.EphemeralOwner != c.session {
		return false
	}
	for _, a := range c.actors {
		if (a.state == acquiring || a.state == holding) && slices.Contains(c.core.Entries(a.id), path) {
			return false
		}
	}
	c.world.Stats.GivenUp++
	return true
}
