package sim

import (
	"errors"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/wire"
)

// actorState is the state of an actor as a caller of package zklock knows it. A canceled
// claim may exist in the lock core until its znode is gone.
type actorState int

const (
	idle actorState = iota
	acquiring
	holding
	releasing // waits until all znodes of its hold are gone
)

// actor is a goroutine of a client that acquires locks repeatedly.
type actor struct {
	client   *client
	n        int
	state    actorState
	turn     int    // counts acquires
	blocked  bool   // the core has reported the blocker
	blocker  string // the entry for which the actor waits
	id       queue.ID
	claim    *claim
	hold     *hold
	repeats  int   // how often the actor still acquires the same lock
	repeated *part // its last part of that lock
}

func (a *actor) world() *World { return a.client.world }

// after calls do after d, unless the actor's acquire has ended.
func (a *actor) after(d time.Duration, do func()) {
	turn := a.turn
	a.world().after(d, func() {
		a.client.run(actorWork+workKind(a.n), func() {
			if a.turn == turn {
				do()
			}
		})
	})
}

// think waits for a while and then acquires a lock.
func (a *actor) think() {
	a.turn++
	a.state, a.hold, a.blocked, a.blocker = idle, nil, false, ""
	think := a.world().around(a.world().cfg.Think)
	if a.repeats > 0 {
		think = a.world().upTo(5 * time.Millisecond)
	}
	a.after(think, a.acquire)
}

// acquire acquires a lock: mostly like Acquire, sometimes like TryAcquire, and sometimes
// with a context that ends.
func (a *actor) acquire() {
	w, c := a.world(), a.client
	if w.healing || c.closing {
		return
	}
	a.claim = a.drawClaim()
	a.state = acquiring
	c.trace("acquires %+v", a.claim.spec)
	c.input(func(core *queue.Core) { a.id = core.Acquire(c.now, a.claim.spec) })
	if !w.cfg.NoCancel && w.oneIn(4) {
		a.after(w.upTo(w.cfg.Timeout), a.cancel)
	}
}

// cancel ends the context of an acquire, possibly after the grant.
func (a *actor) cancel() {
	if a.state == idle || a.state == releasing || a.state == holding && !a.world().oneIn(3) {
		return
	}
	id := a.id
	// The caller has an error and holds nothing, even before the core knows.
	if a.hold != nil {
		a.hold.open = false
	}
	a.think()
	a.client.input(func(core *queue.Core) { core.Cancel(a.client.now, id) })
}

// granted returns from an acquire. Most holds are short. Some last longer than the session
// timeout, so that the session ends during the hold.
func (a *actor) granted(h *hold) {
	w := a.world()
	a.state, a.hold = holding, h
	d := w.upTo(200 * time.Millisecond)
	if w.cfg.Repeats && a.repeats == 0 && len(h.parts) == 1 && h.parts[0].lock.Family == queues && !h.parts[0].shared && w.oneIn(4) {
		a.repeats, a.repeated = 3+w.rng.IntN(20), h.parts[0]
	}
	switch {
	case a.repeats > 0 && !w.healing && !w.oneIn(8):
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
	a.after(d, a.release)
	for w.oneIn(3) {
		a.after(w.upTo(d), a.verify)
	}
	if w.oneIn(3) {
		a.after(w.upTo(d/2), func() { a.watch(d) })
	}
	if p := h.parts[0]; len(h.parts) == 1 && p.writer && w.oneIn(3) {
		a.after(w.upTo(d), a.downgrade)
	}
	if w.oneIn(3) {
		a.after(w.upTo(d), a.client.tick)
	}
}

// release checks the hold and releases it. For the actor, the hold ends with the call. Some
// actors wait until its znodes are gone.
func (a *actor) release() {
	c := a.client
	c.tick()
	if a.state != holding {
		return
	}
	a.hold.open = false
	a.releaseHold(a.hold)
}

// releaseHold releases a hold, which may be lost.
func (a *actor) releaseHold(h *hold) {
	c, id := a.client, a.id
	c.releasing[id] = h
	w := a.world()
	if a.state == holding && w.server.tree != nil && !h.swapped && h.operated() && h.missing() != nil && c.undisturbed() {
		h.brokenAt = w.now
	}
	later := w.oneIn(3)
	if w.oneIn(3) {
		a.state = releasing
	} else {
		a.think()
	}
	c.inRelease = true
	c.input(func(core *queue.Core) {
		if later {
			core.ReleaseLater(c.now, id)
		} else {
			core.Release(c.now, id)
		}
	})
	c.inRelease = false
	if later {
		// The goroutine that flushes may be late, when the release is already sent.
		w.after(w.upTo(2*time.Millisecond), func() {
			c.run(flushWork, func() { c.input(func(core *queue.Core) { core.Flush(c.now) }) })
		})
		if a.state == idle && w.oneIn(2) {
			a.turn++
			a.acquire()
		}
	}
}

// released handles the core's signal that a hold's znodes are gone, or that it cannot
// delete them now.
func (c *client) released(a *actor, s queue.Signal) {
	w := c.world
	c.note("released %d: %v", s.ID, s.Err)
	h := c.releasing[s.ID]
	delete(c.releasing, s.ID)
	if h == nil {
		w.fail("%s: release of %d, which was not requested", c.name, s.ID)
		return
	}
	if a != nil && a.state == releasing {
		a.think()
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
	// The delete for a node lock may have deleted the znode of another client.
	if s.Err == nil && h.brokenAt != 0 && h.parts[0].lock.Family != nodeLocks && w.disturbed <= h.brokenAt && c.undisturbed() {
		w.fail("%s: %s is said to be released, and was taken away before that", c.name, h.node())
	}
	if s.Err != nil || w.server.tree == nil {
		if s.Err != nil && !c.closing && !w.bannedAny(h.parts, h.claim.since) {
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

// signal handles a signal of the lock core.
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
		if a == nil || a.state != acquiring {
			w.fail("%s: grant of %d, which was not requested", c.name, s.ID)
			return
		}
		if h := a.newHold(s); h != nil {
			c.granted(a, h, s)
		}
	case queue.Failed:
		c.note("failed %d: %v", s.ID, s.Err)
		w.Stats.Failed++
		if a != nil && a.state == acquiring {
			a.checkFailure(s.Err)
			a.think()
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
			a.blocked, a.blocker = true, s.Blocker
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

// lost ends a lost hold. Some actors release it anyway.
func (a *actor) lost(h *hold) {
	h.open = false
	if !a.world().oneIn(3) {
		a.think()
		return
	}
	a.state = releasing
	a.after(a.world().upTo(10*time.Millisecond), func() { a.releaseHold(h) })
}

// granted checks and registers a new hold.
func (c *client) granted(a *actor, h *hold, s queue.Signal) {
	w := c.world
	c.note("granted %v %s token %#x, %v ahead", h.claim.kind(), s.Nodes, s.Token, h.remaining())
	w.Stats.Acquired++
	w.Stats.ByKind[h.claim.kind()]++
	c.holds = append(c.holds, h)
	w.checkGrant(h)
	for _, p := range h.parts {
		if w.server.tree != nil && h.missing() == nil {
			w.beginTrace(h, p, p.nodes[0].path, p.shared)
		}
	}
	a.granted(h)
}

// checkFailure checks that an acquire failed for a reason. The reasons are another holder,
// clients that disagree about a semaphore, and changes by operators.
func (a *actor) checkFailure(err error) {
	w, c := a.world(), a.client
	switch {
	case c.closing:
		return
	case errors.Is(err, queue.ErrLocked):
		if !w.cfg.OneActor {
			return
		}
	case errors.Is(err, queue.ErrPermits):
		for _, p := range a.claim.parts {
			if p.lock.WrongSize {
				w.Stats.SizeConflicts++
				return
			}
		}
	case errors.As(err, new(*queue.ExhaustedError)):
		for _, p := range a.claim.parts {
			if p.lock.jumped {
				w.Stats.Exhausted++
				return
			}
		}
	case errors.Is(err, wire.ErrNoAuth):
		if w.bannedAny(a.claim.parts, a.claim.since) {
			w.Stats.Forbidden++
			return
		}
	case errors.Is(err, queue.ErrForeign):
		for _, p := range a.claim.parts {
			if p.shared && p.lock.tainted(a.claim.since) {
				w.Stats.Foreign++
				return
			}
		}
	}
	w.fail("%s: acquire %+v failed: %v", c.name, a.claim.spec, err)
}

func (c *client) holdOf(id queue.ID) *hold {
	for _, h := range c.holds {
		if h.id == id {
			return h
		}
	}
	return nil
}

// actor returns the actor that waits, holds, or releases with an ID.
func (c *client) actor(id queue.ID) *actor {
	for _, a := range c.actors {
		if a.id == id && a.state != idle {
			return a
		}
	}
	return nil
}
