package zklock

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A deferredAction is done after the mutex is released. Exactly one of its fields is set.
type deferredAction struct {
	channel chan struct{} // to close
	hold    *Hold         // whose Done to close
	call    func()
}

func (d *deferredAction) run() {
	switch {
	case d.channel != nil:
		close(d.channel)
	case d.hold != nil:
		d.hold.closeDone.Do(func() { close(d.hold.done) })
	default:
		d.call()
	}
}

// runAll runs the actions in order. If a function of the caller's panics, such as the handler of
// the logger, the actions after it still run: they close the Done of other holds.
func runAll(actions []deferredAction) {
	next := 0
	defer func() {
		if next < len(actions) {
			runAll(actions[next:])
		}
	}()
	for next < len(actions) {
		next++
		actions[next-1].run()
	}
}

// deferClose closes a channel after the mutex is released. The mutex is held.
func (c *Client) deferClose(ch chan struct{}) {
	c.deferred = append(c.deferred, deferredAction{channel: ch})
}

// deferCall calls f after the mutex is released. The mutex is held.
func (c *Client) deferCall(f func()) { c.deferred = append(c.deferred, deferredAction{call: f}) }

// maxKept bounds the buffers that are kept between steps. One read can bring the grants of
// many locks, but a client that is idle again should be small.
const maxKept = 128

// step is the event loop: it passes one input, with the time, to the core, and then does
// what the core wants. Requests leave in the order of the core, whichever goroutine sends
// them.
//
// An acquire takes this path: Lock.Acquire and Client.start (lock.go) give step the input
// Core.Acquire (internal/queue); the core outputs requests; step passes each to send,
// which translates it (Client.toOp in request.go) and gives it to the ZooKeeper client
// (zk.Client.GoIn).
func (c *Client) step(input func(core *queue.Core, now time.Duration)) { c.stepBy(now, input) }

// stepReceived is step for a reply or an event. The ZooKeeper client read the clock after
// it received them, so a recent reading is enough: if it misses a suspend, the step is
// like one that the machine suspended after its reading. Such a step grants nothing, and
// the next [Hold.Err] reads the clock itself. A reply that reports a request as not sent
// has no such reading before it. It proves nothing, so no decision depends on its time.
func (c *Client) stepReceived(input func(core *queue.Core, now time.Duration)) {
	c.stepBy(boottime.Recent, input)
}

// stepBy is step with a clock, which it reads under the mutex, so that the times of the
// core never decrease.
func (c *Client) stepBy(clock func() time.Duration, input func(core *queue.Core, now time.Duration)) {
	c.mu.Lock()
	at := clock()
	input(c.core, at)
	c.apply(c.core, at)
	if len(c.idleHandoffs) > 0 {
		c.enqueueWaiters(c.core, at)
	}
	c.schedule(at)
	var room [4]deferredAction // the step of one lock has no more to do
	after := append(room[:0], c.deferred...)
	clear(c.deferred)
	if c.deferred = c.deferred[:0]; cap(c.deferred) > maxKept {
		c.deferred = nil
	}
	for !c.flushing && len(c.outbox) > 0 {
		c.flushing = true
		batch := c.outbox
		c.outbox = c.sending[:0]
		c.mu.Unlock()
		requests := c.requests[:0]
		for i := range batch {
			requests = append(requests, c.toRequest(&batch[i]))
		}
		c.zk.GoAll(requests...)
		clear(batch)
		clear(requests)
		if c.requests = nil; cap(requests) <= maxKept {
			c.requests = requests[:0]
		}
		c.mu.Lock()
		if c.sending = nil; cap(batch) <= maxKept {
			c.sending = batch[:0]
		}
		c.flushing = false
	}
	c.mu.Unlock()
	runAll(after)
}

// flushSoon makes the core send, in a moment, the requests that it keeps back for the
// next acquire to batch. The goroutine ends when it has done so.
func (c *Client) flushSoon() {
	c.mu.Lock()
	pending := c.flushPending
	c.flushPending = true
	c.mu.Unlock()
	if pending {
		return
	}
	go func() {
		runtime.Gosched() // an acquire that follows the release comes first
		c.step(func(core *queue.Core, now time.Duration) {
			c.flushPending = false
			core.Flush(now)
		})
	}()
}

// apply takes the output of the core at this moment. The mutex is held.
func (c *Client) apply(core *queue.Core, at time.Duration) {
	c.outbox, c.signals = core.Take(c.outbox, c.signals)
	for i := range c.signals {
		c.signal(c.signals[i], at)
	}
	clear(c.signals)
	if c.signals = c.signals[:0]; cap(c.signals) > maxKept {
		c.signals = nil
	}
	if core.Idle() {
		c.cond.Broadcast()
	}
}

// schedule sets the timer for the next time at which the core has something to do. A
// timer that is set too early is left alone: it finds nothing to do and is set again,
// which is cheaper than moving it at each step. The mutex is held.
func (c *Client) schedule(now time.Duration) {
	at, ok := c.core.Next()
	if !ok || c.closed || c.timerSet && c.timerAt <= at {
		return
	}
	c.timerSet, c.timerAt = true, at
	c.timer.Reset(max(0, at-now))
}

// tick is called by the timer. The timer can go off between two results of one read, so
// tick must not report that all results were delivered. The results of its requests come
// with a later read.
func (c *Client) tick() {
	c.step(func(core *queue.Core, now time.Duration) {
		c.timerSet = false
		core.Tick(now)
	})
}

func (c *Client) onDrained() {
	clock := func() time.Duration {
		if c.core.MayGrant() {
			return now() // a grant compares the deadline with this reading
		}
		return boottime.Recent()
	}
	c.stepBy(clock, func(core *queue.Core, now time.Duration) { core.Drained(now) })
}

func (c *Client) onEvent(e zk.Event) {
	var kind queue.EventKind
	switch e.Type {
	case zk.EventNodeDeleted:
		kind = queue.Deleted
	case zk.EventNodeDataChanged:
		kind = queue.Changed
	case zk.EventNodeCreated:
		kind = queue.Created
	case zk.EventNodeChildrenChanged:
		kind = queue.Children
	default:
		return
	}
	c.stepReceived(func(core *queue.Core, now time.Duration) { core.Event(now, kind, e.Path, e.Zxid) })
}

func (c *Client) onState(s zk.StateChange) {
	change := queue.SessionChange{Session: s.SessionID, Timeout: s.Timeout, Sent: s.Sent, GivenUp: s.GivenUp, Conn: s.Conn}
	switch s.State {
	case zk.Connected:
		change.State = queue.Connected
		c.unwatches.Store(false)
		if err := c.opts.checkTimeout(s.Timeout); err != nil {
			c.log.Warn("heartbeats of this session are quorum writes", "error", err)
		}
	case zk.Disconnected:
		change.State = queue.Disconnected
	case zk.Expired:
		change.State = queue.Expired
	case zk.AuthFailed:
		change.State, change.Err, change.Left = queue.Closed, zk.ErrAuthFailed, zk.ErrAuthFailed
	case zk.Closed:
		change.State, change.Err = queue.Closed, queue.ErrClosed
		if s.Err != nil {
			change.Left = errUnconfirmed
		}
	default:
		return
	}
	c.step(func(core *queue.Core, now time.Duration) {
		if change.State == queue.Connected && change.Session != c.session {
			c.session = change.Session
			c.sessions++
			c.noCredentials.Store(false)
		}
		core.Session(now, change)
	})
	if change.State == queue.Connected {
		c.ticks.connected(s)
	}
}

// errUnconfirmed is the error of a release that was not confirmed when the client was
// closed.
var errUnconfirmed = fmt.Errorf("%w: %w", ErrClosed, zk.ErrNotConfirmed)

// signal translates a signal of the core into what callers see. The mutex is held.
func (c *Client) signal(s queue.Signal, at time.Duration) {
	switch s.Kind {
	case queue.Granted:
		c.addGrant(s, at)
	case queue.Failed:
		if a := c.acquisitions[s.ID]; a != nil {
			delete(c.acquisitions, s.ID)
			a.err, a.blocker = publicError(s.Err), s.Blocker
			c.deferClose(a.done)
			c.notifyFailed(a, a.err)
			if a.handoff != nil {
				c.markIdle(a.handoff)
			}
		}
	case queue.Lost:
		if p := c.grants[s.ID]; p != nil {
			delete(c.grants, s.ID)
			c.loseGrant(p, s.Err, at)
			if p.handoff != nil && p.handoff.grant == p {
				c.markIdle(p.handoff)
			}
		}
	case queue.Released:
		c.finishRelease(s)
	case queue.Waiting:
		if a := c.acquisitions[s.ID]; a != nil {
			c.setPosition(a, s)
		}
	case queue.Jeopardy, queue.Recovered:
		if p := c.grants[s.ID]; p != nil {
			c.reportJeopardy(p, s.Kind == queue.Jeopardy)
		}
	case queue.Verified, queue.Downgraded, queue.DataSet:
		c.finishCall(s)
	case queue.Revoked:
		if p := c.grants[s.ID]; p != nil {
			c.markRevoked(p)
		}
	case queue.NearLimit:
		if a := c.acquisitions[s.ID]; a != nil {
			c.warn("sequence numbers near their limit; delete the lock's znode while no client uses it", a.lock, "sequence", s.Token)
		}
	}
}

func (c *Client) addGrant(s queue.Signal, at time.Duration) {
	a := c.acquisitions[s.ID]
	if a == nil {
		return
	}
	delete(c.acquisitions, s.ID)
	p := &grant{
		client: c, lock: a.lock, id: s.ID, token: s.Token, session: s.Session, timeline: a.timeline, started: a.started,
		nodes: s.Nodes, tokens: s.Tokens, value: a.lock.value, released: make(chan struct{}),
	}
	if a.lock.onlySemaphores() {
		p.token = 0
	}
	if g := a.handoff; g != nil {
		p.handoff, g.leader, g.grant, g.count = g, nil, p, 1
	}
	p.timeline.markGranted(at)
	a.hold = p.newHold(a.lock)
	c.grants[s.ID] = p
	c.deferClose(a.done)
	c.notify(c.opts.OnAcquire, p, nil)
}

func (c *Client) finishRelease(s queue.Signal) {
	p := c.grants[s.ID]
	if p == nil {
		return
	}
	delete(c.grants, s.ID)
	tell := c.opts.OnRelease
	switch {
	case errors.Is(s.Err, queue.ErrGone), errors.Is(s.Err, queue.ErrExpired):
		p.releaseErr, tell = lostError("release", p.lock.path, s.Err), c.opts.OnLost
		c.warn("lock was lost before its release", p.lock, "token", p.token, "error", s.Err)
	case s.Err != nil:
		p.releaseErr = &Error{Op: "release", Path: p.lock.path, Err: publicError(s.Err)}
	}
	c.deferClose(p.released)
	c.notify(tell, p, p.releaseErr)
}

// reportJeopardy reports that the heartbeat of a hold is overdue, or was answered again.
func (c *Client) reportJeopardy(p *grant, overdue bool) {
	var err error
	if overdue {
		err = queue.ErrDeadline
		c.warn("lock in jeopardy: no answer from a quorum", p.lock, "token", p.token)
	}
	c.notify(c.opts.OnJeopardy, p, err)
}

// warn logs a message about a lock after the mutex is released. A handler may write the path
// as it is, so the path is legible.
func (c *Client) warn(msg string, l *Lock, args ...any) {
	c.deferCall(func() { c.log.Warn(msg, append([]any{"lock", legible.Text(l.path)}, args...)...) })
}

// A pendingRequest is a request of the core that is in flight. The client reuses them.
type pendingRequest struct {
	client       *Client
	request      queue.Request
	created      [1]string // backs the reply
	namesCreator bool      // znodes that inherit an ACL name their creator
	asksUnwatch  bool      // an Unwatch that only asks whether the servers remove watches
	onResult     func(zk.Result)
}

// toRequest translates a request of the core. Its result goes to the core.
func (c *Client) toRequest(r *queue.Request) zk.Request {
	f, ok := c.requestPool.Get().(*pendingRequest)
	if !ok {
		f = &pendingRequest{client: c}
		f.onResult = f.finish
	}
	f.request, f.namesCreator = *r, !c.noCredentials.Load()
	op := c.toOp(r)
	if f.asksUnwatch = r.Kind == queue.Unwatch && !c.unwatches.Load(); f.asksUnwatch {
		op = zk.GetConfigOp()
	}
	if r.Batchable {
		op = zk.BatchableOp(op)
	}
	return zk.Request{Session: r.Session, Op: op, Done: f.onResult}
}

// finish passes the result to the core.
func (f *pendingRequest) finish(res zk.Result) {
	c := f.client
	q := f.reply(&res)
	c.stepReceived(func(core *queue.Core, now time.Duration) { core.Reply(now, q) })
	f.request, f.created = queue.Request{}, [1]string{}
	c.requestPool.Put(f)
}
