package sim

import (
	"path"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// A trace shows whether a holder crashed: its entry is gone and its record exists.
type trace struct {
	shared   bool
	entry    string
	record   string
	born     time.Duration
	seen     bool          // the entry existed
	vanished time.Duration // when the crash became visible, or 0
}

// A record is the znode that an acquire with a lock delay creates next to its entry.
type record struct {
	client   *client
	session  int64
	released bool // the client has sent its delete
	lost     bool // the hold was lost
}

// recordOf returns the path of an entry's record.
func recordOf(entry string) string {
	dir, name := path.Split(entry)
	return queue.Held(strings.TrimSuffix(dir, "/")) + "/" + name[:len(name)-10]
}

// delayed reports whether the hold has a lock delay for a part.
func (h *hold) delayed(p *part) bool {
	return h.claim.spec.Delay > 0 && p.lock.Family == queues
}

// beginTrace begins a trace of a hold's part.
func (w *World) beginTrace(h *hold, p *part, entry string, shared bool) {
	if !h.delayed(p) {
		return
	}
	p.trace = &trace{shared: shared, entry: entry, record: recordOf(entry), born: w.now}
	p.lock.traces = append(p.lock.traces, p.trace)
}

// checkTraces finds crashed holders after a change on the server.
func (w *World) checkTraces() {
	for _, l := range w.locks {
		n := 0
		for _, t := range l.traces {
			switch entry := w.there(t.entry); {
			case entry:
				t.seen, t.vanished = true, 0
			case !t.seen:
				if w.now > t.born+time.Minute {
					continue // the downgrade was not done
				}
			case t.vanished != 0:
				// A client that releases a hold whose entry is gone ends the delay.
				rec := w.records[t.record]
				if w.now > t.vanished+2*w.cfg.LockDelay || rec.released && !rec.lost && !w.there(t.record) {
					continue
				}
			case w.there(t.record):
				t.vanished = w.now
			default:
				continue // the client released it
			}
			l.traces[n] = t
			n++
		}
		clear(l.traces[n:])
		l.traces = l.traces[:n]
	}
}

// checkDelay checks that a claim with a lock delay has waited after the crash of a holder.
// Its client's clock may be fast.
func (w *World) checkDelay(h *hold, p *part) {
	if !h.delayed(p) {
		return
	}
	d := h.claim.spec.Delay
	d -= d * 2 * time.Duration(w.cfg.Drift) / million
	for _, t := range p.lock.traces {
		if t.vanished == 0 || t.entry == p.nodes[0].path || p.shared && t.shared {
			continue
		}
		// Clients measure the delay with the server's wall clock.
		if w.now < t.vanished+d && w.server.jumped < t.vanished {
			w.fail("%s granted %v after %s vanished, the delay is %v", p.nodes[0].path, w.now-t.vanished, t.entry, h.claim.spec.Delay)
		}
		w.Stats.Delayed++
	}
}

// noteRecords notes the records that a request creates or deletes.
func (c *client) noteRecords(r queue.Request) {
	for _, made := range r.Creates {
		if made.Persistent {
			c.world.records[made.Path] = &record{client: c, session: c.session}
		}
	}
	if r.Kind == queue.Delete {
		if rec := c.world.records[r.Path]; rec != nil && rec.client == c {
			rec.released = true
		}
	}
}

// loseRecords notes that a hold was lost. Its records stay.
func (h *hold) loseRecords() {
	for _, p := range h.parts {
		for _, n := range p.nodes {
			for _, entry := range []string{n.path, n.next} {
				if entry == "" || !h.delayed(p) {
					continue
				}
				if rec := h.client.world.records[recordOf(entry)]; rec != nil {
					rec.lost = true
				}
			}
		}
	}
}

// checkWait checks that an acquire waits for a lock delay only because of a record whose
// hold was not released.
func (w *World) checkWait(c *client, blocker string) {
	rec := w.records[blocker]
	switch {
	case rec == nil:
		w.fail("%s waits for %s, which is no record", c.name, blocker)
	case rec.lost || !rec.released || !rec.client.alive || w.operated[blocker] || w.server.tree == nil:
	case w.sessionThere(rec.session):
		w.fail("%s waits for the delay of %s, which was released", c.name, blocker)
	}
	w.Stats.DelayWaits++
}

// sessionThere reports whether the server has a session.
func (w *World) sessionThere(id int64) bool {
	for _, s := range w.server.tree.Sessions() {
		if s.ID == id {
			return true
		}
	}
	return false
}

// checkRemaining checks the remaining znodes after all releases: only parents, strays, and the
// records of holds that were not released may exist.
func (w *World) checkRemaining() {
	for _, p := range w.strays {
		if !w.there(p) {
			w.fail("%s is gone, which is no contender", p)
		}
	}
	for _, p := range w.server.tree.Paths() {
		if !strings.HasSuffix(path.Dir(p), queue.Held("")) {
			continue
		}
		rec := w.records[p]
		switch {
		case rec == nil:
			w.fail("%s is left, and its owner is not known", p)
		case rec.lost || !rec.client.alive:
		default:
			w.fail("%s is left by %s, given up: %t", p, rec.client.name, rec.released)
		}
	}
}
