package zklock

import (
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// Local returns the lock for many goroutines of one process that want it often: up
// to k holds in a row of this client share one znode, passed on in memory from one
// to the next in their order of arrival, without a word to the servers. After k the
// znode is given back, and who waits behind it in other processes has his turn
// before this client's next k. A k of 1 changes nothing.
//
// Each hold excludes the others as always. But all that share a znode have one
// [Hold.Token]: it grows between processes, and from one znode to the next, not
// between holds that were passed on, which a resource can't tell apart by it. Nor
// can Inspect and other programs, which see one holder, the one that made the znode.
//
// A hold is not passed on, but given back, when somebody asks for the lock back,
// when its deadline is near or a heartbeat overdue, when it was downgraded, and
// while a [Hold.Guard] of it is not answered. Releasing a hold that was passed on
// returns at once, and reports no loss that the client does not know of. A TryAcquire
// fails while others of this client hold or wait.
//
// Mutexes and writers can be Local, all with the same lock; k is at least 1, and of
// several each goes by its own. Other locks, Reentrant ones and members of an [All]
// can't: ErrInvalidLock.
func (l *Lock) Local(k int) *Lock {
	return l.with(func(l *Lock) error {
		switch {
		case k < 1:
			return fmt.Errorf("%w: Local(%d): at least one hold in a row", ErrInvalidLock, k)
		case l.all || l.nodeLock() || l.parts[0].mode != Exclusive:
			return fmt.Errorf("%w: only a mutex or a writer can be Local", ErrInvalidLock)
		case l.reentrant:
			return fmt.Errorf("%w: a Reentrant lock can't be Local", ErrInvalidLock)
		}
		l.turns = k
		return nil
	})
}

// A localKey tells which Local locks are passed on among each other.
type localKey struct {
	queue  string
	writer bool
}

// A local is what a client does about one Local lock: one claim in the queue, or one
// hold, and the attempts that wait for that to be passed on. It is guarded by the
// client's mutex. spec/local.pml has the rules.
type local struct {
	key     localKey
	leader  *attempt    // whose claim is in the queue
	held    *possession // the hold that has the znode
	passed  int         // how many holds that znode has had
	waiting []*attempt  // in order of arrival

	// Where the leader's claim stands in the queue, once that is known.
	ahead   int
	blocker Entry
}

// local returns what the client does about the lock.
func (c *Client) local(l *Lock) *local {
	key := localKey{l.parts[0].key(), l.parts[0].member.Writer}
	g := c.locals[key]
	if g == nil {
		if c.locals == nil {
			c.locals = map[localKey]*local{}
		}
		g = &local{key: key}
		c.locals[key] = g
	}
	return g
}

// claim has the core acquire for an attempt. The mutex is held.
func (c *Client) claim(core *queue.Core, now time.Duration, a *attempt) {
	if g := a.local; g != nil {
		g.ahead, g.blocker = 0, Entry{}
	}
	a.id = core.Acquire(now, a.lock.spec(a.try, a.data))
	c.attempts[a.id] = a
}

// joinLocal makes an attempt at a Local lock. The mutex is held.
func (c *Client) joinLocal(core *queue.Core, now time.Duration, a *attempt) {
	g := c.local(a.lock)
	a.local = g
	switch {
	case g.leader == nil && g.held == nil:
		g.leader = a
		c.claim(core, now, a)
	case a.try:
		a.err = ErrLocked
		c.closeLater(a.settled)
		c.tellFailed(a, a.err)
	default:
		g.waiting = append(g.waiting, a)
		c.waitsLocal(a)
	}
}

// leaveLocal gives up an attempt at a Local lock that has no hold. A claim in the
// queue goes over to who waits next: its place is worth keeping. The mutex is held.
func (c *Client) leaveLocal(core *queue.Core, now time.Duration, a *attempt) {
	g := a.local
	if g.leader != a {
		g.waiting = slices.DeleteFunc(g.waiting, func(o *attempt) bool { return o == a })
		return
	}
	g.leader = nil
	delete(c.attempts, a.id)
	if len(g.waiting) > 0 && !a.try {
		next := g.pop()
		next.id, next.place, g.leader = a.id, a.place, next
		c.attempts[a.id] = next
		if g.blocker.Node != "" {
			c.tellWaiting(next, g.ahead, g.blocker)
		}
		return
	}
	core.Cancel(now, a.id)
	c.again = append(c.again, g)
}

func (g *local) pop() *attempt {
	a := g.waiting[0]
	g.waiting = slices.Delete(g.waiting, 0, 1)
	return a
}

// pass gives a hold that is being released to who waits next, if it may, and
// reports whether it did. The mutex is held.
func (c *Client) pass(core *queue.Core, now time.Duration, p *possession) bool {
	g := p.local
	if len(g.waiting) == 0 || g.passed >= g.waiting[0].lock.turns || p.reader || !core.Passable(now, p.id) {
		return false
	}
	a := g.pop()
	next := &possession{
		client: c, lock: a.lock, id: p.id, token: p.token, session: p.session, story: a.story, since: a.since,
		nodes: p.nodes, tokens: p.tokens, gone: make(chan struct{}), local: g,
	}
	next.story.hold(now)
	a.hold = next.view(a.lock)
	c.holds[p.id], g.held = next, next
	g.passed++
	c.closeLater(p.gone)
	c.closeLater(a.settled)
	c.tell(c.opts.OnRelease, p, nil)
	c.tell(c.opts.OnAcquire, next, nil)
	core.Watch(now, p.id) // so that it is not passed on when somebody wants it
	return true
}

// vacated notes that a Local lock has neither claim nor hold any more. The mutex is
// held.
func (c *Client) vacated(g *local) {
	g.leader, g.held = nil, nil
	c.again = append(c.again, g)
}

// lead has who waits next for a Local lock take a place in the queue, where nobody
// of this client's has one. A hold that is being given back goes along. The mutex
// is held.
func (c *Client) lead(core *queue.Core, now time.Duration) {
	for len(c.again) > 0 {
		g := c.again[0]
		c.again = c.again[1:]
		switch {
		case g.leader != nil || g.held != nil:
		case len(g.waiting) > 0:
			g.leader = g.pop()
			c.claim(core, now, g.leader)
		case c.locals[g.key] == g:
			delete(c.locals, g.key)
		}
		if len(c.again) == 0 {
			c.again = nil
			core.Flush(now)
		}
		c.apply(core, now)
	}
}
