package queue

import "time"

// checkWatches fails if a client that has read all answers and events believes that its server has a
// watch which it does not have, or does not know what its watches have reported, or waits for an
// answer that does not come. A waiter's own entries are watched after watchAfter at the latest.
func (w *history) checkWatches() {
	w.noteWaiting()
	for _, l := range w.links {
		if at, ok := l.core.Next(); ok && at <= w.now || !l.informed() || l.session == 0 {
			continue
		}
		for path, p := range l.core.parentWatches {
			if p.state == parentRequested || p.state == parentWatched && !l.data[path] {
				w.failf("c%d does not watch %s, in state %d", l.name, path, p.state)
			}
		}
		for _, acq := range l.core.acquires {
			if acq.swap != nil {
				continue
			}
			for _, p := range acq.positions {
				w.checkWatchesAt(l, p)
			}
		}
	}
}

// checkWatchesAt is checkWatches for one position.
func (w *history) checkWatchesAt(l *link, p *position) {
	acq, blocked := p.acquire, p.blocker.name != "" && p.clearance == notCleared && p.role != fixed
	for _, n := range p.nodes {
		if n.state != alive {
			continue
		}
		z := w.nodes[n.path()]
		exists := z != nil && z.owner == l.session && (n.czxid <= 0 || z.czxid == n.czxid)
		switch {
		case n.watch == ownRequested:
			w.failf("c%d.%d waits for the watch on its %s", l.name, acq.id, n.path())
		case n.watch == ownAnswered && exists && !l.data[n.path()]:
			w.failf("c%d.%d does not watch its %s", l.name, acq.id, n.path())
		case n.watch == ownAnswered && !exists:
			w.failf("c%d.%d does not know that its %s is gone", l.name, acq.id, n.path())
		case blocked && acq.phase == working && p.query == idle && !n.watch.requested() && acq.retryAt > w.now+retryPause &&
			w.now > w.waiting[acq]+watchAfter+1:
			w.failf("c%d.%d waits since %v, and its %s is not watched", l.name, acq.id, w.waiting[acq], n.path())
		}
	}
	path := p.parent + "/" + p.blocker.name
	switch {
	case p.query == proving:
		w.failf("c%d.%d waits for a proof", l.name, acq.id)
	case blocked && p.blocker.watch == watchRequested && !l.data[path]:
		w.failf("c%d.%d does not watch %s", l.name, acq.id, path)
	case blocked && p.blocker.watch == watchNone && l.core.standing(p.parent, p.blocker.name) == nil:
		w.failf("c%d.%d waits for %s, which is not its client's, without a watch", l.name, acq.id, path)
	}
}

// noteWaiting notes which acquires wait.
func (w *history) noteWaiting() {
	now := map[*acquire]time.Duration{}
	for _, l := range w.links {
		for _, acq := range l.core.acquires {
			for _, p := range acq.positions {
				if p.blocker.name == "" || p.clearance != notCleared || !l.up {
					continue
				}
				now[acq] = w.now
				if at, ok := w.waiting[acq]; ok {
					now[acq] = at
				}
			}
		}
	}
	w.waiting = now
}
