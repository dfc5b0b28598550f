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
	lock   *lock
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
	a.lock = w.locks[w.rng.IntN(len(w.locks))]
	a.state = asking
	try := w.oneIn(6)
	c.input(func(core *queue.Core) {
		a.id = core.Acquire(c.now, queue.Spec{
			Members: []queue.Member{{Path: a.lock.path, Kind: a.lock.kind}},
			Try:     try,
			Data:    []byte(`{"host":"` + c.name + `"}`),
		})
	})
	if w.oneIn(4) {
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
	if w.oneIn(3) {
		a.later(w.upTo(d), a.verify)
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

// verify is a question to a quorum that is under way.
type verify struct {
	call uint64
	hold *hold
	at   time.Duration
}

// verify asks whether the hold is held.
func (a *actor) verify() {
	c := a.client
	if a.state != holding {
		return
	}
	c.calls++
	c.verifies = append(c.verifies, verify{c.calls, a.hold, c.world.now})
	c.input(func(core *queue.Core) { core.Guard(c.now, a.id, c.calls) })
}

// verified checks that the hold was there while the question was under way.
func (c *client) verified(s queue.Signal) {
	for i, v := range c.verifies {
		if v.call != s.Call {
			continue
		}
		c.verifies = append(c.verifies[:i], c.verifies[i+1:]...)
		c.world.Stats.Verified++
		if s.Err == nil && v.hold.gone && v.hold.goneAt < v.at {
			c.world.fail("%s: verified %s at %v, gone since %v", c.name, v.hold.node, v.at, v.hold.goneAt)
		}
		return
	}
	c.world.fail("%s: answer to a verify that nobody asked for", c.name)
}

// signal is what the lock core tells.
func (c *client) signal(s queue.Signal) {
	w := c.world
	if s.Kind == queue.Verified {
		c.verified(s)
		return
	}
	a := c.actor(s.ID)
	switch s.Kind {
	case queue.Granted:
		if a == nil || a.state != asking {
			w.fail("%s: grant of %d, which nobody asked for", c.name, s.ID)
			return
		}
		h := &hold{client: c, id: s.ID, lock: a.lock, node: s.Node, token: s.Token, open: true, read: c.reads}
		c.note("granted %s token %#x, %v ahead", s.Node, s.Token, h.remaining())
		w.Stats.Acquired++
		c.holds = append(c.holds, h)
		w.checkGrant(h)
		a.granted(h)
	case queue.Failed:
		// No fault of this world is a reason for a permanent error.
		c.note("failed %d: %v", s.ID, s.Err)
		w.Stats.Failed++
		if a != nil && a.state == asking {
			if !c.closing && !errors.Is(s.Err, queue.ErrLocked) {
				w.fail("%s: acquire of %s failed: %v", c.name, a.lock.path, s.Err)
			}
			a.rest()
		}
	case queue.Lost:
		c.note("lost %d: %v", s.ID, s.Err)
		w.Stats.Lost++
		if a != nil && a.state == holding {
			w.checkLoss(a.hold, s.Err)
			a.hold.open = false
			a.rest()
		}
	case queue.Waiting:
		if a != nil {
			a.behind = true
		}
	case queue.Released:
		c.note("released %d: %v", s.ID, s.Err)
	}
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
