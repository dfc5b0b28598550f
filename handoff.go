package zklock

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// LocalHandoff returns the lock for programs in which many goroutines acquire it often.
// Up to k holds in a row of this client share one znode: the client hands the lock over
// in memory from one to the next, in their order of arrival, without a request to the
// servers. After k holds the client releases the znode, and waiters of other processes
// that are next in the queue are granted before this client's next k. A k of 1 changes
// nothing.
//
// Each hold still excludes the others. But all holds that share a znode have the same
// [Hold.Token]. The token grows between processes, and from one znode to the next. It
// does not grow between holds that were handed over, so a resource cannot tell these
// apart by it. Inspect and other programs cannot either: they see one holder, the one
// that created the znode.
//
// The client releases the znode instead of handing over if a release was requested, if
// the deadline is near or a heartbeat is overdue, if the hold was downgraded, and while a
// [Hold.Guard] of the hold is not answered. Releasing a hold that was handed over returns
// at once, and reports no loss that the client does not know of. A TryAcquire fails while
// other acquires of this client hold or wait.
//
// LocalHandoff applies to mutexes and writers, which then share their handoff if they are
// the same lock. k is at least 1, and each Lock counts by its own k. Other locks,
// Reentrant locks, and members of an [All] fail with ErrInvalidLock.
func (l *Lock) LocalHandoff(k int) *Lock {
	return l.derive(func(l *Lock) error {
		switch {
		case k < 1:
			return fmt.Errorf("%w: LocalHandoff(%d): at least 1", ErrInvalidLock, k)
		case l.all || l.isNodeLock() || l.components[0].mode != Exclusive:
			return fmt.Errorf("%w: only a mutex or a writer has a LocalHandoff", ErrInvalidLock)
		case l.value != "":
			return fmt.Errorf("%w: a lock with a value has no LocalHandoff, whose holds share a znode", ErrInvalidLock)
		case l.reentrant:
			return fmt.Errorf("%w: a Reentrant lock has no LocalHandoff", ErrInvalidLock)
		}
		l.maxHandoffs = k
		return nil
	})
}

// A handoffKey identifies the locks that are handed over to each other.
type handoffKey struct {
	queue  string
	writer bool
}

// A handoff is the state of one lock with LocalHandoff: one acquire in the queue or one
// grant, and the acquisitions that wait for it to be handed over. The mutex of the client
// guards it. spec/local.pml has the rules.
type handoff struct {
	key     handoffKey
	leader  *acquisition   // whose acquire is in the queue
	grant   *grant         // the grant that has the znode
	count   int            // how many holds that znode has had
	waiting []*acquisition // in order of arrival
}

// handoffFor returns the handoff of the lock.
func (c *Client) handoffFor(l *Lock) *handoff {
	key := handoffKey{l.components[0].key(), l.components[0].member.Writer}
	g := c.handoffs[key]
	if g == nil {
		if c.handoffs == nil {
			c.handoffs = map[handoffKey]*handoff{}
		}
		g = &handoff{key: key}
		c.handoffs[key] = g
	}
	return g
}

// enqueueLocal starts an acquire of a lock with LocalHandoff. The mutex is held.
func (c *Client) enqueueLocal(core *queue.Core, now time.Duration, a *acquisition) {
	g := c.handoffFor(a.lock)
	a.handoff = g
	switch {
	case g.leader == nil && g.grant == nil:
		c.enqueueLeader(core, now, a)
	case a.try:
		a.err = ErrLocked
		c.deferClose(a.done)
		c.notifyFailed(a, a.err)
	default:
		g.waiting = append(g.waiting, a)
		c.setLocalPosition(a)
	}
}

// enqueueLeader enqueues an acquire on behalf of all that wait for its handoff. The mutex
// is held.
func (c *Client) enqueueLeader(core *queue.Core, now time.Duration, a *acquisition) {
	a.handoff.leader = a
	c.enqueue(core, now, a)
}

// cancelLocal cancels an acquire that has no hold. If its acquire is in the queue, the
// next waiter takes over the position in the queue. The mutex is held.
func (c *Client) cancelLocal(core *queue.Core, now time.Duration, a *acquisition) {
	g := a.handoff
	if g.leader != a {
		g.waiting = slices.DeleteFunc(g.waiting, func(o *acquisition) bool { return o == a })
		return
	}
	g.leader = nil
	delete(c.acquisitions, a.id)
	if len(g.waiting) > 0 && !a.try {
		next := g.pop()
		next.id, next.wait, g.leader = a.id, a.wait, next
		c.acquisitions[a.id] = next
		if next.wait.node != "" {
			c.notifyWaiting(next)
		}
		return
	}
	core.Cancel(now, a.id)
	c.idleHandoffs = append(c.idleHandoffs, g)
}

func (g *handoff) pop() *acquisition {
	a := g.waiting[0]
	g.waiting = slices.Delete(g.waiting, 0, 1)
	return a
}

// handOff hands a hold that is being released over to the next waiter, if that is
// allowed, and reports whether it did. The mutex is held.
func (c *Client) handOff(core *queue.Core, now time.Duration, p *grant) bool {
	g := p.handoff
	if len(g.waiting) == 0 || g.count >= g.waiting[0].lock.maxHandoffs || p.shared || !core.Passable(now, p.id) {
		return false
	}
	a := g.pop()
	next := &grant{
		client: c, lock: a.lock, id: p.id, token: p.token, session: p.session, timeline: a.timeline, started: a.started,
		nodes: p.nodes, tokens: p.tokens, released: make(chan struct{}), handoff: g,
	}
	next.timeline.markGranted(now)
	a.hold = next.newHold(a.lock)
	c.grants[p.id], g.grant = next, next
	g.count++
	c.deferClose(p.released)
	c.deferClose(a.done)
	c.notify(c.opts.OnRelease, p, nil)
	c.notify(c.opts.OnAcquire, next, nil)
	core.Watch(now, p.id) // so that a release request stops the handing over
	return true
}

// markIdle records that a handoff has neither a leader nor a grant any more. The mutex is
// held.
func (c *Client) markIdle(g *handoff) {
	g.leader, g.grant = nil, nil
	c.idleHandoffs = append(c.idleHandoffs, g)
}

// enqueueWaiters enqueues the next waiter of each idle handoff. A release that is kept
// back goes out with it. The mutex is held.
func (c *Client) enqueueWaiters(core *queue.Core, now time.Duration) {
	for len(c.idleHandoffs) > 0 {
		g := c.idleHandoffs[0]
		c.idleHandoffs = c.idleHandoffs[1:]
		switch {
		case g.leader != nil || g.grant != nil:
		case len(g.waiting) > 0:
			c.enqueueLeader(core, now, g.pop())
		case c.handoffs[g.key] == g:
			delete(c.handoffs, g.key)
		}
		if len(c.idleHandoffs) == 0 {
			c.idleHandoffs = nil
			core.Flush(now)
		}
		c.apply(core, now)
	}
}

// setLocalPosition records the position of an acquire that waits for a handoff: after the
// grant that has the znode, or after the leader.
func (c *Client) setLocalPosition(a *acquisition) {
	g := a.handoff
	a.wait.local = len(g.waiting)
	if c.opts.OnWait == nil {
		return
	}
	ahead, blocker, owner := len(g.waiting), Entry{Path: a.lock.path, Mode: a.lock.mode()}, c.identity
	if p := g.grant; p != nil {
		blocker.Node, blocker.Name = p.nodes[0], path.Base(p.nodes[0])
		blocker.Mode, blocker.Revoked = p.modeFor(a.lock.components[0]), p.revokeSeen
		owner.Since = p.started
	} else {
		ahead += g.leader.wait.ahead
		owner.Since = g.leader.started
	}
	if !c.opts.Anonymous {
		blocker.Owner = owner
	}
	c.queueWaiting(a, ahead, blocker)
}

// Reentrant returns the lock for callers that may already hold it. Go has no identity of
// a goroutine, so re-entering depends on the context: an Acquire with a ctx that comes
// from [Hold.Context] of a hold of the same client on the same path returns at once. It
// returns a hold of its own on the same znode and with the same token. The last Release
// releases the lock.
//
// An exclusive hold can be re-entered exclusively and, by a reader, shared; the lock
// stays exclusive until all its holds are released. A shared hold can be re-entered
// shared. An exclusive acquire under the caller's own shared hold could never be granted,
// and fails with ErrUpgrade, whether the lock is Reentrant or not. Under a hold that has
// ended, an acquire is an ordinary one.
//
// A lock that is not Reentrant, acquired with the context of its own hold, would wait for
// itself forever, and fails with ErrReentry. Two cases do not wait for themselves, but
// enqueue, and can then wait for another client. A reader under its own reader can wait
// for a writer between the two. Further permits of a semaphore that has enough of them
// can wait for an acquire ahead that waits for the first permits. A ResizableSemaphore
// always enqueues, because its number of permits can grow. If it stays too small, the
// acquire waits for the caller's own permits until its ctx ends.
//
// Semaphores and Alls cannot be re-entered; they fail with ErrInvalidLock.
func (l *Lock) Reentrant() *Lock {
	return l.derive(func(l *Lock) error {
		if l.all || l.components[0].mode == Permit {
			return fmt.Errorf("%w: a semaphore or an All cannot be Reentrant", ErrInvalidLock)
		}
		if l.maxHandoffs > 1 {
			return fmt.Errorf("%w: a lock with LocalHandoff cannot be Reentrant", ErrInvalidLock)
		}
		l.reentrant = true
		return nil
	})
}

// reenter checks what the caller already holds according to ctx. It returns a hold if it
// re-entered one, an error if an acquire would wait for itself, and neither if the
// acquire is an ordinary one.
func (l *Lock) reenter(ctx context.Context, try bool) (h *Hold, err error) {
	// Before the mutex is locked, because Value may be a method of the caller's.
	chain, _ := ctx.Value(heldChainKey{}).(*heldChain)
	if chain == nil {
		return nil, nil
	}
	c := l.client
	c.step(func(core *queue.Core, now time.Duration) {
		core.Tick(now)
		c.apply(core, now)
		h, err = l.checkHeld(c.heldIn(chain), try)
	})
	return h, err
}

// checkHeld returns the outcome of an acquire under these grants. The mutex is held.
func (l *Lock) checkHeld(own []*grant, try bool) (*Hold, error) {
	for _, part := range l.components {
		if part.mode == Permit {
			of := part.semaphore.Of // 0 if only the servers know it
			if taken := countPermits(own, part); of > 0 && taken > 0 && taken+part.semaphore.Permits > of {
				return nil, l.selfError(ErrReentry, part, try)
			}
			continue
		}
		for _, p := range own {
			switch has := p.modeFor(part); {
			case has == "":
				continue
			case has == Shared && part.mode == Exclusive:
				return nil, l.selfError(ErrUpgrade, part, false)
			case l.reentrant:
				return p.newHold(l), nil
			case has == Exclusive:
				return nil, l.selfError(ErrReentry, part, try)
			}
		}
	}
	return nil, nil
}

// selfError returns the error of an acquire that would wait for itself at one of its locks.
// For a try, it also wraps ErrLocked. The caller names the lock; only an All has several.
func (l *Lock) selfError(err error, at component, try bool) error {
	if try {
		err = fmt.Errorf("%w: %w", ErrLocked, err)
	}
	if l.all {
		err = fmt.Errorf("%w (%s)", err, at.path)
	}
	return err
}

// countPermits returns how many permits of a semaphore the grants have.
func countPermits(own []*grant, of component) int {
	n := 0
	for i, p := range own {
		if slices.Contains(own[:i], p) {
			continue
		}
		for _, has := range p.lock.components {
			if has.key() == of.key() {
				n += has.semaphore.Permits
			}
		}
	}
	return n
}
