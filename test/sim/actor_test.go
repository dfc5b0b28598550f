package sim

import (
	"errors"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/wire"
)

// actorState is what an actor is about. It is what a caller of package zklock
// knows, not what the lock core knows: a claim that was given up may live on in
// the core until its znode is gone.
type actorState int

const (
	resting actorState = iota
	asking
	holding
	leaving // it waits for the news that all of its hold is gone
)

// actor is a goroutine of a client that takes locks again and again.
type actor struct {
	client  *client
	n       int
	state   actorState
	turn    int    // counts acquires
	behind  bool   // it received the entry that it waits for
	blocker string // that was
	id      queue.ID
	wanted  *want
	hold    *hold
	spree   int   // how often it still acquires the same lock
	again   *part // what it has had of that lock
}

func (a *actor) world() *World { return a.client.world }

// later does something after a while, unless the acquire it is about is over.
func (a *actor) later(d time.Duration, do func()) {
	turn := a.turn
	a.world().after(d, func() {
		a.client.run(actorWork+workKind(a.n), func() {
			if a.turn == turn {
				do()
			}
		})
	})
}

// rest thinks for a while and then wants a lock again.
func (a *actor) rest() {
	a.turn++
	a.state, a.hold, a.behind, a.blocker = resting, nil, false, ""
	think := a.world().around(a.world().cfg.Think)
	if a.spree > 0 {
		think = a.world().upTo(5 * time.Millisecond)
	}
	a.later(think, a.acquire)
}

// acquire wants one of the locks: mostly as Acquire, at times as TryAcquire, and
// at times under a context that ends after a while.
func (a *actor) acquire() {
	w, c := a.world(), a.client
	if w.healing || c.closing {
		return
	}
	a.wanted = a.want()
	a.state = asking
	c.trace("acquires %+v", a.wanted.spec)
	c.input(func(core *queue.Core) { a.id = core.Acquire(c.now, a.wanted.spec) })
	if !w.cfg.Patient && w.oneIn(4) {
		a.later(w.upTo(w.cfg.Timeout), a.cancel)
	}
}

// cancel is the end of the context: the acquire is given up, even if it was
// granted just now.
func (a *actor) cancel() {
	if a.state == resting || a.state == leaving || a.state == holding && !a.world().oneIn(3) {
		return
	}
	id := a.id
	// The caller got an error, so nothing is held from here on, even before the
	// core knows.
	if a.hold != nil {
		a.hold.open = false
	}
	a.rest()
	a.client.input(func(core *queue.Core) { core.Cancel(a.client.now, id) })
}

// granted is the return of an acquire. Most holds are short, so that much
// happens; some outlast the session, so that its end falls into them.
func (a *actor) granted(h *hold) {
	w := a.world()
	a.state, a.hold = holding, h
	d := w.upTo(200 * time.Millisecond)
	if w.cfg.Sprees && a.spree == 0 && len(h.parts) == 1 && h.parts[0].lock.Family == queues && !h.parts[0].shared && w.oneIn(4) {
		a.spree, a.again = 3+w.rng.IntN(20), h.parts[0]
	}
	switch {
	case a.spree > 0 && !w.healing && !w.oneIn(8):
		d = w.upTo(5 * time.Millisecond)
	case w.healing:
		d = w.upTo(20 * time.Millisecond)
	case a.client.machine.isolate != 0:
		d = 4 * w.cfg.Timeout
		w.cutOffHolder(a.client.machine)
	case w.oneIn(20):
		d = w.upTo(3 * w.cfg.Timeout)
	case w.oneIn(4):
		d = w.upTo(w.cfg.Timeout)
	}
	a.later(d, a.release)
	for w.oneIn(3) {
		a.later(w.upTo(d), a.verify)
	}
	if w.oneIn(3) {
		a.later(w.upTo(d/2), func() { a.watch(d) })
	}
	if p := h.parts[0]; len(h.parts) == 1 && p.writer && w.oneIn(3) {
		a.later(w.upTo(d), a.downgrade)
	}
	if w.oneIn(3) {
		a.later(w.upTo(d), a.client.tick)
	}
}

// release looks at the hold and gives it back. The hold ends for its owner with
// the call; when its znodes go is the core's affair, and some wait for that.
func (a *actor) release() {
	c := a.client
	c.tick()
	if a.state != holding {
		return
	}
	a.hold.open = false
	a.giveBack(a.hold)
}

// giveBack releases a hold, which may have been lost.
func (a *actor) giveBack(h *hold) {
	c, id := a.client, a.id
	c.parting[id] = h
	w := a.world()
	if a.state == holding && w.server.tree != nil && !h.swapped && h.operated() && h.missing() != nil && c.undisturbed() {
		h.brokenAt = w.now
	}
	later := w.oneIn(3)
	if w.oneIn(3) {
		a.state = leaving
	} else {
		a.rest()
	}
	c.giving = true
	c.input(func(core *queue.Core) {
		if later {
			core.ReleaseLater(c.now, id)
		} else {
			core.Release(c.now, id)
		}
	})
	c.giving = false
	if later {
		// The goroutine that is to send it may be late, and find it sent.
		w.after(w.upTo(2*time.Millisecond), func() {
			c.run(flushWork, func() { c.input(func(core *queue.Core) { core.Flush(c.now) }) })
		})
		if a.state == resting && w.oneIn(2) {
			a.turn++
			a.acquire()
		}
	}
}

// released is the news that a hold's znodes are gone, or can't be deleted now.
func (c *client) released(a *actor, s queue.Signal) {
	w := c.world
	c.note("released %d: %v", s.ID, s.Err)
	h := c.parting[s.ID]
	delete(c.parting, s.ID)
	if h == nil {
		w.fail("%s: release of %d, which was not requested", c.name, s.ID)
		return
	}
	if a != nil && a.state == leaving {
		a.rest()
	}
	if errors.Is(s.Err, queue.ErrGone) {
		if !h.operated() {
			w.fail("%s: release of %s: %v, although nothing deleted it", c.name, h.node(), s.Err)
		}
		return
	}
	if errors.Is(s.Err, queue.ErrExpired) {
		if !w.closedByOperator[h.session] {
			w.fail("%s: release of %s: %v, although nothing ended the session", c.name, h.node(), s.Err)
		}
		return
	}
	// The delete of a node lock may have found the znode of another client.
	if s.Err == nil && h.brokenAt != 0 && h.parts[0].lock.Family != nodeLocks && w.disturbed <= h.brokenAt && c.undisturbed() {
		w.fail("%s: %s is said to be released, and was taken away before that", c.name, h.node())
	}
	if s.Err != nil || w.server.tree == nil {
		if s.Err != nil && !c.closing && !w.bannedAny(h.parts, h.want.since) {
			w.fail("%s: release of %s: %v", c.name, h.node(), s.Err)
		}
		return
	}
	for _, p := range h.parts {
		for _, n := range p.nodes {
			if _, stat, ok := w.server.tree.Get(n.path); ok && stat.Czxid == n.czxid {
				w.fail("%s: %s is said to be released and is there", c.name, n.path)
			}
		}
	}
}

// signal is what the lock core tells.
func (c *client) signal(s queue.Signal) {
	w := c.world
	if s.Kind == queue.Verified {
		c.verified(s)
		return
	}
	a := c.actor(s.ID)
	c.trace("signal %+v", s)
	switch s.Kind {
	case queue.Granted:
		if a == nil || a.state != asking {
			w.fail("%s: grant of %d, which was not requested", c.name, s.ID)
			return
		}
		if h := a.newHold(s); h != nil {
			c.granted(a, h, s)
		}
	case queue.Failed:
		c.note("failed %d: %v", s.ID, s.Err)
		w.Stats.Failed++
		if a != nil && a.state == asking {
			a.checkFailure(s.Err)
			a.rest()
		}
	case queue.Lost:
		c.note("lost %d: %v", s.ID, s.Err)
		w.Stats.Lost++
		if h := c.holdOf(s.ID); h != nil {
			h.loseRecords()
		}
		if a != nil && a.state == holding {
			w.checkLoss(a.hold, s.Err)
			a.lost(a.hold)
		}
	case queue.Waiting:
		if a != nil {
			a.behind, a.blocker = true, s.Blocker
		}
		if s.Ahead == 0 {
			w.checkWait(c, s.Blocker)
		}
	case queue.Released:
		c.released(a, s)
	case queue.Downgraded:
		c.downgraded(c.holdOf(s.ID), s)
	case queue.Revoked:
		c.revokedSignal(c.holdOf(s.ID))
	}
}

// lost ends a hold that was lost. Some give it back all the same.
func (a *actor) lost(h *hold) {
	h.open = false
	if !a.world().oneIn(3) {
		a.rest()
		return
	}
	a.state = leaving
	a.later(a.world().upTo(10*time.Millisecond), func() { a.giveBack(h) })
}

// granted takes a new hold on.
func (c *client) granted(a *actor, h *hold, s queue.Signal) {
	w := c.world
	c.note("granted %v %s token %#x, %v ahead", h.want.kind(), s.Nodes, s.Token, h.remaining())
	w.Stats.Acquired++
	w.Stats.ByKind[h.want.kind()]++
	c.holds = append(c.holds, h)
	w.checkGrant(h)
	for _, p := range h.parts {
		if w.server.tree != nil && h.missing() == nil {
			w.follow(h, p, p.nodes[0].path, p.shared)
		}
	}
	a.granted(h)
}

// checkFailure checks that an acquire failed for a reason. No fault of this world
// justifies a permanent error. Clients that disagree do, and so does an operator that
// overwrites an entry's data.
func (a *actor) checkFailure(err error) {
	w, c := a.world(), a.client
	switch {
	case c.closing:
		return
	case errors.Is(err, queue.ErrLocked):
		if !w.cfg.Alone {
			return
		}
	case errors.Is(err, queue.ErrPermits):
		for _, p := range a.wanted.parts {
			if p.lock.Quarrel {
				w.Stats.Quarrels++
				return
			}
		}
	case errors.As(err, new(*queue.ExhaustedError)):
		for _, p := range a.wanted.parts {
			if p.lock.jumped {
				w.Stats.Exhausted++
				return
			}
		}
	case errors.Is(err, wire.ErrNoAuth):
		if w.bannedAny(a.wanted.parts, a.wanted.since) {
			w.Stats.Forbidden++
			return
		}
	case errors.Is(err, queue.ErrForeign):
		for _, p := range a.wanted.parts {
			if p.shared && p.lock.tainted(a.wanted.since) {
				w.Stats.Foreign++
				return
			}
		}
	}
	w.fail("%s: acquire %+v failed: %v", c.name, a.wanted.spec, err)
}

// holdOf finds a hold by its id.
func (c *client) holdOf(id queue.ID) *hold {
	for _, h := range c.holds {
		if h.id == id {
			return h
		}
	}
	return nil
}

// actor finds the actor that an id belongs to now.
func (c *client) actor(id queue.ID) *actor {
	for _, a := range c.actors {
		if a.id == id && a.state != resting {
			return a
		}
	}
	return nil
}
