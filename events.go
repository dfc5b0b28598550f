package zklock

import (
	"context"
	"time"
)

// queueHook queues a call of f, which must not be nil. The mutex is held.
func (c *Client) queueHook(f func(Event), e Event) {
	c.hookCalls = append(c.hookCalls, func() { f(e) })
	if !c.hooksRunning {
		c.hooksRunning = true
		// The client owns this goroutine, which ends when the queue is empty.
		go c.runHooks()
	}
}

// runHooks makes the queued calls in order, until none is left. If a hook ends the goroutine,
// as runtime.Goexit does, another one continues.
func (c *Client) runHooks() {
	done := false
	defer func() {
		if !done {
			go c.runHooks() // ends as this one
		}
	}()
	for {
		c.mu.Lock()
		if done = len(c.hookCalls) == 0; done {
			c.hookCalls, c.hooksRunning = nil, false
			c.mu.Unlock()
			return
		}
		f := c.hookCalls[0]
		c.hookCalls[0] = nil
		c.hookCalls = c.hookCalls[1:]
		c.mu.Unlock()
		f()
	}
}

// notify queues a call of a hook about a grant, if the hook is set. The mutex is held.
func (c *Client) notify(f func(Event), p *grant, err error) {
	if f != nil {
		c.queueHook(f, p.event(err))
	}
}

// notifyFailed queues a call of OnFail, if it is set. The mutex is held.
func (c *Client) notifyFailed(a *acquisition, err error) {
	if f := c.opts.OnFail; f != nil {
		c.queueHook(f, a.event(err))
	}
}

// A timeline is what the hooks are told of an acquire and its hold. It is nil in a client
// without hooks. The mutex of the client guards it.
type timeline struct {
	number  uint64          // among the acquires of the client
	ctx     context.Context // of the acquire
	started time.Duration   // when the acquire began, by the clock of package boottime
	granted time.Duration
	held    time.Duration // how long the hold lasted, once it is over
}

// markGranted records the beginning of the hold.
func (s *timeline) markGranted(now time.Duration) {
	if s != nil {
		s.granted = now
	}
}

// markEnded records the release or loss of the hold.
func (s *timeline) markEnded(now time.Duration) {
	if s != nil {
		s.held = now - s.granted
	}
}

// event returns an event of an acquire.
func (a *acquisition) event(err error) Event { return a.timeline.event(a.lock, now(), err) }

// event returns an event of a hold.
func (p *grant) event(err error) Event {
	at := now()
	e := p.timeline.event(p.lock, at, err)
	e.Token, e.Held = p.token, p.timeline.held
	if !p.over {
		e.Held = at - p.timeline.granted
	}
	return e
}

func (s *timeline) event(l *Lock, at time.Duration, err error) Event {
	return Event{
		Path: l.path, Mode: l.mode(), Attempt: s.number, Duration: at - s.started,
		Time: time.Now(), Err: err, Context: s.ctx,
	}
}

// mode returns the mode of the lock; of several, that of the first.
func (l *Lock) mode() Mode {
	if len(l.components) == 0 {
		return ""
	}
	return l.components[0].mode
}

// queueWaiting queues a call of OnWait, which must be set. The mutex is held.
func (c *Client) queueWaiting(a *acquisition, ahead int, blocker Entry) {
	e := a.event(nil)
	e.Ahead, e.Blocker = ahead, blocker
	c.queueHook(c.opts.OnWait, e)
}

// An Event describes what happened to an acquire or a hold, for a hook of [Options].
type Event struct {
	Path     string        // path of the lock
	Mode     Mode          // how the lock is acquired, also after a Downgrade; for an All, the mode of its first lock
	Attempt  uint64        // identifies the acquire: all events of it and of its hold have this number in this client
	Token    int64         // fencing token of the hold; 0 for OnWait and OnFail, and if there is no common token
	Ahead    int           // OnWait: how many entries are ahead in the queue, including holds and acquires of a local handoff
	Blocker  Entry         // OnWait: the entry that the acquire waits for; without Holder, Token, Session, and Since
	Duration time.Duration // since the acquire began
	Held     time.Duration // how long the hold has lasted, until it was released or lost; 0 if there is none yet
	Time     time.Time     // when it happened, by the clock of this machine; the hook can be called later
	Err      error         // reason of OnFail and OnLost, and of OnRelease and OnJeopardy if they report a problem; else nil
	// Context is the context that the acquire was called with, for example to find the
	// tracing span of the caller. It may be done already.
	Context context.Context
}

// hasHooks reports whether any hook is set.
func (o *Options) hasHooks() bool {
	return o.OnWait != nil || o.OnAcquire != nil || o.OnFail != nil || o.OnRelease != nil || o.OnLost != nil || o.OnJeopardy != nil
}
