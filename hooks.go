package zklock

import (
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

// event tells of an acquire.
func (a *attempt) event(err error) Event {
	return Event{
		Path: a.lock.path, Mode: a.lock.mode(), Attempt: a.number, Duration: now() - a.begun,
		Time: time.Now(), Err: err, Context: a.ctx,
	}
}

// event tells of a hold.
func (p *possession) event(err error) Event {
	at := now()
	return Event{
		Path: p.lock.path, Mode: p.lock.mode(), Attempt: p.number, Token: p.token, Duration: at - p.begun,
		Held: at - p.granted, Time: time.Now(), Err: err, Context: p.ctx,
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
	e := a.event(nil)
	e.Ahead = s.Ahead
	e.Blocker = Entry{
		Path: of.path, Node: s.Blocker, Name: path.Base(s.Blocker), Mode: of.modeOf(s.Blocker),
		Owner: owner, Data: text, Revoked: queue.Asked(s.Data),
	}
	which := ""
	if a.lock.all {
		which = " for " + of.path
	}
	a.place = fmt.Sprintf("number %d in line%s, behind %s", s.Ahead+1, which, e.Blocker.who())
	if !entry {
		a.place = fmt.Sprintf("first in line%s, while the lock-delay of one that vanished, %s, lasts", which, e.Blocker.Name)
	}
	if f := c.opts.OnWait; f != nil {
		c.hook(f, e)
	}
}
