package sim

import (
	"path"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// A trace is how the server's znodes show that a holder crashed: the entry is gone, and
// its record exists.
type trace struct {
	shared   bool
	entry    string
	record   string
	born     time.Duration
	seen     bool          // the entry was there
	vanished time.Duration // 0: it has not
}

// A record is what an acquire with a lock delay creates next to its entry.
type record struct {
	client  *client
	session int64
	given   bool // its claim has asked for its deletion: it left in order
	lost    bool // its hold was lost
}

// recordOf is the path of the record that goes with an entry.
func recordOf(entry string) string {
	dir, name := path.Split(entry)
	return queue.Held(strings.TrimSuffix(dir, "/")) + "/" + name[:len(name)-10]
}

// delayed reports whether a claim of the hold's keeps a lock-delay for a part.
func (h *hold) delayed(p *part) bool {
	return h.want.spec.Delay > 0 && p.lock.Family == queues
}

// follow begins to look after what others see of a hold's part.
func (w *World) follow(h *hold, p *part, entry string, shared bool) {
	if !h.delayed(p) {
		return
	}
	p.trace = &trace{shared: shared, entry: entry, record: recordOf(entry), born: w.now}
	p.lock.traces = append(p.lock.traces, p.trace)
}

// checkTraces looks, after the server has changed something, which holds have
// vanished.
func (w *World) checkTraces() {
	for _, l := range w.locks {
		n := 0
		for _, t := range l.traces {
			switch entry := w.there(t.entry); {
			case entry:
				t.seen, t.vanished = true, 0
			case !t.seen:
				if w.now > t.born+time.Minute {
					continue // a downgrade that was not done
				}
			case t.vanished != 0:
				// A client that releases it although its entry is gone ends the wait.
				rec := w.records[t.record]
				if w.now > t.vanished+2*w.cfg.LockDelay || rec.given && !rec.lost && !w.there(t.record) {
					continue
				}
			case w.there(t.record):
				t.vanished = w.now
			default:
				continue // it has left in order
			}
			l.traces[n] = t
			n++
		}
		clear(l.traces[n:])
		l.traces = l.traces[:n]
	}
}

// checkDelay checks that a claim with a lock-delay has kept off a lock after its
// holder vanished. Its client's clock may be fast.
func (w *World) checkDelay(h *hold, p *part) {
	if !h.delayed(p) {
		return
	}
	d := h.want.spec.Delay
	d -= d * 2 * time.Duration(w.cfg.Drift) / million
	for _, t := range p.lock.traces {
		if t.vanished == 0 || t.entry == p.nodes[0].path || p.shared && t.shared {
			continue
		}
		// Between clients a delay is counted by the server's wall clock.
		if w.now < t.vanished+d && w.server.jumped < t.vanished {
			w.fail("%s granted %v after %s vanished, the delay is %v", p.nodes[0].path, w.now-t.vanished, t.entry, h.want.spec.Delay)
		}
		w.Stats.Delayed++
	}
}

// recorded takes note of the records that a request makes or deletes.
func (c *client) recorded(r queue.Request) {
	for _, made := range r.Creates {
		if made.Persistent {
			c.world.records[made.Path] = &record{client: c, session: c.session}
		}
	}
	if r.Kind == queue.Delete {
		if rec := c.world.records[r.Path]; rec != nil && rec.client == c {
			rec.given = true
		}
	}
}

// loseRecords notes that a hold was lost: its records stay for others to see.
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

// checkWait checks that an acquire that waits for a lock delay has a reason: the record
// that it saw is of a hold that was not released.
func (w *World) checkWait(c *client, blocker string) {
	rec := w.records[blocker]
	switch {
	case rec == nil:
		w.fail("%s waits for %s, which is no record", c.name, blocker)
	case rec.lost || !rec.given || !rec.client.alive || w.operated[blocker] || w.server.tree == nil:
	case w.sessionThere(rec.session):
		w.fail("%s waits for the delay of %s, which was released", c.name, blocker)
	}
	w.Stats.KeptOff++
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

// checkRest looks, when all is quiet, at every znode that is left: parents, and
// records of claims that did not leave in order. Strays are to be there still.
func (w *World) checkRest() {
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
			w.fail("%s is left by %s, given up: %t", p, rec.client.name, rec.given)
		}
	}
}
