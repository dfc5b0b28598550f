package zklock

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// hook queues a call of f, which must not be nil. The mutex is held.
func (c *Client) hook(f func(Event), e Event) {
	c.hooks = append(c.hooks, func() { f(e) })
	if !c.hooking {
		c.hooking = true
		// The client owns this goroutine, which ends when the queue is empty.
		go c.runHooks()
	}
}

// runHooks calls what is queued, in order, until nothing is.
func (c *Client) runHooks() {
	for {
		c.mu.Lock()
		batch := c.hooks
		c.hooks = nil
		c.hooking = len(batch) > 0
		c.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, f := range batch {
			f()
		}
	}
}

// tell queues a call of a hook about a hold, if there is one. The mutex is held.
func (c *Client) tell(f func(Event), p *possession, err error) {
	if f != nil {
		c.hook(f, p.event(err))
	}
}

// tellFailed tells that an acquire failed, if anybody wants to know. The mutex is
// held.
func (c *Client) tellFailed(a *attempt, err error) {
	if f := c.opts.OnFail; f != nil {
		c.hook(f, a.event(err))
	}
}

// A story is what hooks are told of an acquire and its hold. In a client without
// hooks there is none. The client's mutex guards it.
type story struct {
	number  uint64          // among the client's acquires
	ctx     context.Context // of the acquire
	begun   time.Duration   // when the acquire was, by the clock of package boottime
	granted time.Duration
	lasted  time.Duration // the hold, once it is over
}

// hold notes that the hold begins.
func (s *story) hold(now time.Duration) {
	if s != nil {
		s.granted = now
	}
}

// end notes that the hold was released or lost.
func (s *story) end(now time.Duration) {
	if s != nil {
		s.lasted = now - s.granted
	}
}

// event tells of an acquire.
func (a *attempt) event(err error) Event { return a.story.event(a.lock, now(), err) }

// event tells of a hold.
func (p *possession) event(err error) Event {
	at := now()
	e := p.story.event(p.lock, at, err)
	e.Token, e.Held = p.token, p.story.lasted
	if !p.over {
		e.Held = at - p.story.granted
	}
	return e
}

func (s *story) event(l *Lock, at time.Duration, err error) Event {
	return Event{
		Path: l.path, Mode: l.mode(), Attempt: s.number, Duration: at - s.begun,
		Time: time.Now(), Err: err, Context: s.ctx,
	}
}

// mode is how the lock, or the first of several, is taken.
func (l *Lock) mode() Mode {
	if len(l.parts) == 0 {
		return ""
	}
	return l.parts[0].mode
}

// waits takes note of a claim's place in the queue.
func (c *Client) waits(a *attempt, s queue.Signal) {
	owner, text := parseOwner(s.Data)
	of, entry := a.lock.partOf(s.Blocker)
	if !entry {
		of = a.lock.partWith(s.Blocker)
	}
	blocker := Entry{
		Path: of.path, Node: s.Blocker, Name: path.Base(s.Blocker), Mode: of.modeOf(s.Blocker),
		Owner: owner, Data: text, Revoked: queue.Asked(s.Data),
	}
	which := ""
	if a.lock.all {
		which = " for " + of.path
	}
	a.place = fmt.Sprintf("number %d in line%s, behind %s", s.Ahead+1, which, blocker.who())
	if !entry {
		a.place = fmt.Sprintf("first in line%s, while the lock-delay of one that vanished, %s, lasts", which, blocker.Name)
	}
	if g := a.local; g != nil {
		g.ahead, g.blocker = s.Ahead, blocker
	}
	c.tellWaiting(a, s.Ahead, blocker)
}

// waitsLocal takes note of the place of an attempt that has come to stand in a Local
// lock's line: behind the hold that has the znode, or the attempt that asks for one.
func (c *Client) waitsLocal(a *attempt) {
	g := a.local
	a.place = fmt.Sprintf("number %d of this client's in line", len(g.waiting))
	if c.opts.OnWait == nil {
		return
	}
	ahead, blocker, owner := len(g.waiting), Entry{Path: a.lock.path, Mode: a.lock.mode()}, c.name
	if p := g.held; p != nil {
		blocker.Node, blocker.Name = p.nodes[0], path.Base(p.nodes[0])
		blocker.Mode, blocker.Revoked = p.mode(a.lock.parts[0]), p.asked
		owner.Since = p.since
	} else {
		ahead += g.ahead
		owner.Since = g.leader.since
	}
	if !c.opts.Anonymous {
		blocker.Owner = owner
	}
	c.tellWaiting(a, ahead, blocker)
}

// tellWaiting tells of an attempt's place, if anybody wants to know. The mutex is
// held.
func (c *Client) tellWaiting(a *attempt, ahead int, blocker Entry) {
	if f := c.opts.OnWait; f != nil {
		e := a.event(nil)
		e.Ahead, e.Blocker = ahead, blocker
		c.hook(f, e)
	}
}
