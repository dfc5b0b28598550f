package sim

import (
	"errors"
	"strconv"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/wire"
)

// downgrade downgrades a writer's hold.
func (a *actor) downgrade() {
	c := a.client
	h := a.hold
	if a.state != holding || h.swapped {
		return
	}
	c.calls++
	h.downgrade, h.swapped = c.calls, true
	data := `{"host":"` + c.name + `","token":` + strconv.FormatInt(h.parts[0].token, 10) + `}`
	c.input(func(core *queue.Core) { core.Downgrade(c.now, a.id, []byte(data), h.downgrade) })
}

// noteSwap notes the znodes that a downgrade creates.
func (c *client) noteSwap(r queue.Request) {
	for _, h := range c.holds {
		p := h.parts[0]
		if h.downgrade == 0 || p.nodes[0].path != r.Paths[0] || p.nodes[0].next != "" {
			continue
		}
		for i, n := range p.nodes {
			n.next = r.Creates[i].Path
		}
		c.world.beginTrace(h, p, p.nodes[0].next, true)
	}
}

// downgraded handles the result of a downgrade.
func (c *client) downgraded(h *hold, s queue.Signal) {
	w := c.world
	if h == nil || !h.open {
		return
	}
	if h.downgrade != s.Call {
		w.fail("%s: answer to a downgrade that was not requested", c.name)
		return
	}
	h.downgrade = 0
	p := h.parts[0]
	c.note("downgraded %s: %v", h.node(), s.Err)
	if s.Err != nil {
		if !errors.Is(s.Err, queue.ErrGone) && !errors.Is(s.Err, queue.ErrNotHeld) &&
			!(errors.Is(s.Err, wire.ErrNoAuth) && w.banned(p.lock, h.claim.since)) {
			w.fail("%s: downgrade of %s: %v", c.name, h.node(), s.Err)
		}
		for _, n := range p.nodes {
			n.next = ""
		}
		return
	}
	w.Stats.Downgraded++
	if s.Node != p.nodes[0].next {
		w.fail("%s: %s was downgraded to %s, not %s", c.name, h.node(), s.Node, p.nodes[0].next)
		return
	}
	p.shared = true
	for _, n := range p.nodes {
		n.path, n.next, n.czxid = n.next, "", 0
		if w.server.tree == nil {
			continue
		}
		if _, stat, ok := w.server.tree.Get(n.path); ok {
			n.czxid = stat.Czxid
		}
	}
	if h.safe() && p.token > p.lock.maxToken {
		p.lock.maxToken, p.lock.last = p.token, p.nodes[0].path
	}
}
