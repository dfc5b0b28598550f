package sim

import (
	"errors"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// actorState is what an actor is about. It is what a caller of package zklock
// knows, not what the lock core knows: a claim that was given up may live on in
// the core until its znode is gone.
type actorState int

const (
	resting actorState = iota
	asking
	holding
)

// actor is a goroutine of a client that takes locks again and again.
type actor struct {
	client *client
	n      int
	state  actorState
	turn   int  // counts acquires
	behind bool // it was told behind whom it waits
	id     queue.ID
	wanted *want
	hold   *hold
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
	a.state, a.hold, a.behind = resting, nil, false
	a.later(a.world().around(a.world().cfg.Think), a.acquire)
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
	if a.state == resting || a.state == holding && !a.world().oneIn(3) {
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
	switch {
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
// the call; when its znode goes is the core's affair.
func (a *actor) release() {
	c := a.client
	c.tick()
	if a.state != holding {
		return
	}
	id := a.id
	a.hold.open = false
	a.rest()
	c.input(func(core *queue.Core) { core.Release(c.now, id) })
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
			w.fail("%s: grant of %d, which nobody asked for", c.name, s.ID)
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
			a.hold.open = false
			a.rest()
		}
	case queue.Waiting:
		if a != nil {
			a.behind = true
		}
		if s.Ahead == 0 {
			w.checkWait(c, s.Blocker)
		}
	case queue.Released:
		c.note("released %d: %v", s.ID, s.Err)
	case queue.Downgraded:
		c.downgraded(c.holdOf(s.ID), s)
	case queue.Revoked:
		c.revokedSignal(c.holdOf(s.ID))
	}
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

// checkFailure checks that an acquire failed for a reason. No fault of this
// world is one for a permanent error, but peers that disagree are, and whoever
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
