package sim

import "slices"

// checkGrant checks a new hold against all others, and against the server.
func (w *World) checkGrant(h *hold) {
	if w.server.tree != nil && h.missing() != nil {
		h.gone, h.goneAt = true, w.now
	}
	if !h.safe() {
		return // granted by a clock read before a pause: the first look says lost
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
	// A grant may come late, but never early: all that was ahead is gone.
	if n := h.missing(); n != nil {
		w.fail("%s granted while %s is not on the server", h.node(), n.path)
	}
	for _, p := range h.parts {
		w.checkOwner(h, p)
		w.checkAhead(h, p)
	}
}

// checkConflict checks that no other client has a hold that excludes a new one.
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
					if q.of != p.of && w.now > p.lock.open {
						w.fail("%s granted %s, one of %d, while %s holds %s, one of %d", h.client.name, p.nodes[0].path, p.of,
							c.name, q.nodes[0].path, q.of)
					}
				case p.shared && (q.shared || o.downgrade != 0 && w.givenIn(q)):
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

// givenIn reports whether a downgrade that its caller awaits has been done.
func (w *World) givenIn(p *part) bool {
	return w.server.tree == nil || p.nodes[0].next != "" && w.there(p.nodes[0].next)
}

// checkToken checks that tokens rise over holds that conflict.
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

// checkOwner checks that the znodes of a new hold are its session's.
func (w *World) checkOwner(h *hold, p *part) {
	for _, n := range p.nodes {
		if _, stat, _ := w.server.tree.Get(n.path); stat.EphemeralOwner != h.session {
			w.fail("%s granted to %s, but it is session %#x's", n.path, h.client.name, stat.EphemeralOwner)
		}
	}
}

// checkAhead checks that nothing on the server stands ahead of a new hold that
// has to be waited for.
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
			// Those made later have to wait for this one.
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

// gaveUp reports whether an entry that is still on the server is one that its client has
// given up: it is this client's, and belongs to none of its acquires. The client need not
// wait for an entry that it knows to be given up.
func (c *client) gaveUp(path string) bool {
	_, stat, ok := c.world.server.tree.Get(path)
	if !ok || stat.EphemeralOwner != c.session {
		return false
	}
	for _, a := range c.actors {
		if (a.state == asking || a.state == holding) && slices.Contains(c.core.Entries(a.id), path) {
			return false
		}
	}
	c.world.Stats.Handed++
	return true
}
