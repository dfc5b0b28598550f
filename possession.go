package zklock

import (
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// A possession is what one granted acquire has on the servers. Usually one Hold
// shows it; re-entering adds further ones. It is given back with the last of
// them, and when it is lost, so are all.
type possession struct {
	client  *Client
	lock    *Lock // as it was acquired
	id      queue.ID
	token   int64
	session int64
	story   *story        // for the hooks, if there are any
	since   time.Time     // when its acquire began, as its znodes say
	local   *local        // of a Local lock
	gone    chan struct{} // closed when the release is known to have been carried out, or failed

	// Guarded by the client's mutex.
	nodes    []string
	tokens   []int64
	views    []*Hold       // those that have not ended
	first    Hold          // one of them, mostly the only one
	room     [1]*Hold      // for it among the views
	changing chan struct{} // while a downgrade is under way: closed at its end
	change   uint64        // the call that asked for it
	released error         // why the znodes could not be deleted
	revoked  chan struct{}
	reader   bool // a writer's that was downgraded, or is about to be
	over     bool
	asked    bool // revoked is closed
}

// view adds a hold. The mutex is held.
func (p *possession) view(l *Lock) *Hold {
	h := &p.first
	if h.possession != nil {
		h = new(Hold)
	} else {
		p.views = p.room[:0]
	}
	h.possession, h.lock = p, l
	p.views = append(p.views, h)
	return h
}

// mode is how the possession has a part's queue, or "" if it does not have it.
// The mutex is held.
func (p *possession) mode(of part) Mode {
	for _, own := range p.lock.parts {
		if own.key() != of.key() {
			continue
		}
		if p.reader {
			return Shared
		}
		return own.mode
	}
	return ""
}

// of returns the possession's znodes that belong to a lock, with their tokens. The
// mutex is held.
func (p *possession) of(l *Lock) (nodes []string, tokens []int64) {
	if l == p.lock {
		return p.nodes, p.tokens
	}
	for i, node := range p.nodes {
		if _, ok := l.partOf(node); ok {
			nodes, tokens = append(nodes, node), append(tokens, p.tokens[i])
		}
	}
	return nodes, tokens
}

// end marks a hold as over, and wakes who waits for that. The mutex is held.
func (c *Client) end(h *Hold, why error) {
	h.err = why
	p := h.possession
	p.views = slices.DeleteFunc(p.views, func(v *Hold) bool { return v == h })
	contexts := h.contexts
	h.contexts = nil
	if h.done != nil {
		c.after = append(c.after, deed{ended: h})
	}
	for hc := range contexts {
		c.afterwards(func() { hc.cancel(why) })
	}
}

// giveUp ends a hold that is held, and with the last one the possession; later
// says that its delete may wait for flushSoon. The mutex is held.
func (c *Client) giveUp(core *queue.Core, now time.Duration, h *Hold, later bool) {
	p := h.possession
	c.end(h, &Error{Op: "hold", Path: h.lock.path, Err: ErrReleased})
	if len(p.views) > 0 {
		return
	}
	h.last, p.over = true, true
	p.story.end(now)
	if p.local != nil {
		if c.pass(core, now, p) {
			return
		}
		c.vacated(p.local)
		later = true // lead flushes
	}
	delete(c.asking, p.change) // there will be no answer
	if later {
		core.ReleaseLater(now, p.id)
	} else {
		core.Release(now, p.id)
	}
}

// lose ends all holds of a possession. The mutex is held.
func (c *Client) lose(p *possession, why error, at time.Duration) {
	p.over = true
	p.story.end(at)
	delete(c.asking, p.change)
	err := lost("hold", p.lock.path, why)
	for _, h := range slices.Clone(p.views) {
		c.end(h, lost("hold", h.lock.path, why))
	}
	c.tell(c.opts.OnLost, p, err)
	c.warn("lock lost", "lock", p.lock.path, "token", p.token, "error", why)
}
