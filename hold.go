package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/queue"
)

// A Hold is an acquired lock, from Acquire until the hold is released or lost. It is safe
// for concurrent use.
//
// Methods of a Hold compute their result at the time of the call: after a pause of the
// process or, on Linux, a suspend of the machine, the first call to Err reports the loss.
type Hold struct {
	grant *grant
	lock  *Lock

	closeDone sync.Once

	// The mutex of the client guards what follows.
	done         chan struct{} // created by the first call to Done
	err          error         // nil while held
	finalRelease bool          // its release released the grant
	contexts     map[*holdContext]struct{}
}

// String returns the path of the lock and the token, such as
// "/zklock/reports/nightly (token 4711)". It leaves out a token of 0.
func (h *Hold) String() string {
	if token := h.Token(); token != 0 {
		return fmt.Sprintf("%s (token %d)", h.lock.Path(), token)
	}
	return h.lock.Path()
}

// Token returns the fencing token of the hold: the czxid of its znode. It is greater than
// 0 and grows with each grant of the lock, also across restarts of clients and servers,
// and if the znode of the lock was deleted in between. See [Lock.LocalHandoff] for an
// exception. A resource that rejects any token smaller than the largest it has seen
// applies no stale write.
//
// Tokens order holds that exclude each other. Readers, and permits of a semaphore, can
// present their tokens in any order. Fence writes by exclusive holds.
//
// The queues of an [All] have one common token. An All that was acquired InOrder, or that
// has several semaphores and no queue, has no common token: Token returns 0, see
// [Hold.TokenOf]. The token of a semaphore is that of its first permit. Re-entering and
// Downgrade keep the token.
func (h *Hold) Token() int64 {
	if h.lock == h.grant.lock {
		return h.grant.token
	}
	return h.TokenOf(h.lock.path)
}

// TokenOf returns the fencing token for one of the locks of the hold, by its name or
// path. Use it where each lock of an [All] guards a different resource. It returns 0 for
// a lock that the hold does not have.
func (h *Hold) TokenOf(name string) int64 {
	path, err := parseName(name, Layout{})
	if err != nil {
		return 0
	}
	nodes, tokens := h.znodes()
	for i, node := range nodes {
		if p, ok := h.lock.componentOf(node); ok && p.path == path {
			return tokens[i]
		}
	}
	return 0
}

// Node returns the path of the znode of the hold; if there are several, the first.
func (h *Hold) Node() string {
	nodes, _ := h.znodes()
	if len(nodes) == 0 {
		return ""
	}
	return nodes[0]
}

// Nodes returns the paths of all znodes of the hold. An [All] has one for each of its
// locks, a semaphore has one for each permit, and the mixed layout has two instead of
// one. [Hold.Downgrade] changes them.
func (h *Hold) Nodes() []string {
	nodes, _ := h.znodes()
	return slices.Clone(nodes)
}

// znodes returns the znodes of the hold and their tokens.
func (h *Hold) znodes() ([]string, []int64) {
	c := h.grant.client
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.grant.znodesOf(h.lock)
}

// Session returns the id of the ZooKeeper session of the hold.
func (h *Hold) Session() int64 { return h.grant.session }

// Done returns a channel that is closed when the hold ends: on release, or before the
// ensemble can grant the lock to another client.
func (h *Hold) Done() <-chan struct{} {
	h.Err() // advances the time
	return h.doneChan()
}

// doneChan returns the channel of Done without reading the clock.
func (h *Hold) doneChan() <-chan struct{} {
	c := h.grant.client
	c.mu.Lock()
	if h.done == nil {
		h.done = make(chan struct{})
	}
	done, over := h.done, h.err != nil
	c.mu.Unlock()
	if over {
		h.closeDone.Do(func() { close(done) })
	}
	return done
}

// update advances the time of the core, and calls f with the mutex held.
func (h *Hold) update(f func(core *queue.Core, now time.Duration)) {
	c := h.grant.client
	c.step(func(core *queue.Core, now time.Duration) {
		core.Tick(now)
		c.apply(core, now)
		f(core, now)
	})
}

// Err returns nil while the lock is held. If the hold was lost, it returns an error that
// wraps ErrLost and the reason. After Release, it returns ErrReleased. Err reads the
// clock and sends no request.
func (h *Hold) Err() (err error) {
	h.update(func(*queue.Core, time.Duration) { err = h.err })
	return err
}

// Remaining returns how long the hold stays safe if the servers do not answer any more; 0
// if the hold has ended. It shrinks with time, and grows when the servers answer a
// heartbeat.
func (h *Hold) Remaining() (d time.Duration) {
	h.update(func(core *queue.Core, now time.Duration) {
		if at, ok := core.Deadline(); ok && h.err == nil {
			d = max(0, at-now)
		}
	})
	return d
}

// Release releases the lock. The hold ends at once. The client repeats the delete until
// the znode is gone or its session has ended. If ctx ends first, Release returns an error
// that says so, and the client continues in the background. Another Release returns the
// outcome of the first.
//
// If the hold was lost, Release returns the error of the loss, because the lock did not
// guard the work to its end. This includes a loss that the client did not know of: if the
// release finds that the znode is gone, the error wraps ErrLost and ErrDeleted, and if the
// session ended before its deadline, ErrLost and zk.ErrSessionExpired. If the connection was
// lost during the release, the client cannot tell who deleted the znode, and Release returns
// nil.
//
// If a hold was re-entered, each of the holds is released, in any order. The last Release
// deletes the znode.
func (h *Hold) Release(ctx context.Context) error {
	last, err := h.release(false)
	if err != nil || !last {
		return err
	}
	p := h.grant
	select {
	case <-p.released:
		return p.releaseErr
	default:
	}
	select {
	case <-p.released:
		return p.releaseErr
	case <-ctx.Done():
		return &Error{Op: "release", Path: h.lock.path,
			Err: fmt.Errorf("not confirmed yet; continues in the background: %w", contextError(ctx))}
	}
}

// ReleaseAsync releases the lock like Release, without waiting for the servers to confirm
// it. The release is as certain: in the background, the client repeats the delete until
// the znode is gone or its session has ended. If the same client acquires a lock
// immediately afterwards, both go out in one transaction and take one round trip; Release
// takes a round trip of its own.
//
// The next waiter of this client for the lock gets it at once, as after Release. The
// error is nil, or that of the loss if the client knows that the hold was lost. A later
// Release waits for the servers and returns the outcome, such as a loss that the release
// detected. OnRelease or OnLost reports it too.
func (h *Hold) ReleaseAsync() error {
	last, err := h.release(true)
	if last {
		h.grant.client.flushSoon()
	}
	return err
}

// release ends the hold. If later is true, flushSoon sends the delete. release reports
// whether this released the grant, and returns an error if the hold was lost before.
func (h *Hold) release(later bool) (last bool, err error) {
	h.update(func(core *queue.Core, now time.Duration) {
		if h.err == nil {
			h.grant.client.releaseHold(core, now, h, later)
		}
		last = h.finalRelease
		if errors.Is(h.err, ErrLost) {
			err = h.err
		}
	})
	return last, err
}

// do calls f under the hold and releases the hold.
func (h *Hold) do(ctx context.Context, f func(context.Context, *Hold) error) (err error) {
	inner, cancel := h.Context(ctx)
	defer cancel()
	defer func() {
		loss := h.Err()
		// The release is worth a short wait even if ctx is done, because the
		// caller may acquire the lock again at once. It continues in the
		// background anyway.
		wait, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
		defer stop()
		released := h.Release(wait)
		if !errors.Is(loss, ErrLost) {
			loss = released
		}
		if errors.Is(loss, ErrLost) && !errors.Is(err, loss) {
			err = errors.Join(err, loss)
		}
	}()
	return f(inner, h)
}

// releaseWait bounds how long Do waits until the release is confirmed.
const releaseWait = 5 * time.Second

// now reads the clock that runs during suspend.
func now() time.Duration { return boottime.Now() }

// A grant is what one granted acquire has on the servers. It usually has one Hold;
// re-entering adds more. The last release of its holds releases the grant. If the grant
// is lost, all its holds are lost.
type grant struct {
	client   *Client
	lock     *Lock // as it was acquired
	id       queue.ID
	token    int64
	session  int64
	timeline *timeline     // what the hooks are told; nil if there are no hooks
	started  time.Time     // when its acquire began, as its znodes say
	handoff  *handoff      // the handoff that it belongs to; nil if the lock has none
	released chan struct{} // closed when the release was carried out or failed

	// The mutex of the client guards what follows.
	nodes      []string
	tokens     []int64
	holds      []*Hold       // those that have not ended
	firstHold  Hold          // one of the holds, usually the only one
	holdSpace  [1]*Hold      // backs holds while there is one
	changing   chan struct{} // non-nil during a downgrade or a SetValue, and closed at its end
	changeCall uint64        // its call
	value      string        // of its znodes
	releaseErr error         // why the znodes could not be deleted
	revoked    chan struct{}
	shared     bool      // a writer that was downgraded or is being downgraded
	runBegan   time.Time // when its znode was created, by the servers' clock; see Hold.RanWithin
	over       bool
	revokeSeen bool // revoked is closed
}

// newHold adds a hold. The mutex is held.
func (p *grant) newHold(l *Lock) *Hold {
	h := &p.firstHold
	if h.grant != nil {
		h = new(Hold)
	} else {
		p.holds = p.holdSpace[:0]
	}
	h.grant, h.lock = p, l
	p.holds = append(p.holds, h)
	return h
}

// modeFor returns the mode in which the grant has the queue of a component, or "" if it
// does not have it. The mutex is held.
func (p *grant) modeFor(of component) Mode {
	for _, own := range p.lock.components {
		if own.key() != of.key() {
			continue
		}
		if p.shared {
			return Shared
		}
		return own.mode
	}
	return ""
}

// znodesOf returns the znodes of the grant that belong to a lock, and their tokens. The
// mutex is held.
func (p *grant) znodesOf(l *Lock) (nodes []string, tokens []int64) {
	if l == p.lock {
		return p.nodes, p.tokens
	}
	for i, node := range p.nodes {
		if _, ok := l.componentOf(node); ok {
			nodes, tokens = append(nodes, node), append(tokens, p.tokens[i])
		}
	}
	return nodes, tokens
}

// endHold ends a hold, and closes what waits for the end. The mutex is held.
func (c *Client) endHold(h *Hold, why error) {
	h.err = why
	p := h.grant
	p.holds = slices.DeleteFunc(p.holds, func(v *Hold) bool { return v == h })
	contexts := h.contexts
	h.contexts = nil
	if h.done != nil {
		c.deferred = append(c.deferred, deferredAction{hold: h})
	}
	for hc := range contexts {
		c.deferCall(func() { hc.cancel(why) })
	}
}

// releaseHold ends a hold that is held, and releases the grant with its last hold. If
// later is true, the delete may wait for flushSoon. The mutex is held.
func (c *Client) releaseHold(core *queue.Core, now time.Duration, h *Hold, later bool) {
	p := h.grant
	c.endHold(h, &Error{Op: "hold", Path: h.lock.path, Err: ErrReleased})
	if len(p.holds) > 0 {
		return
	}
	h.finalRelease, p.over = true, true
	p.timeline.markEnded(now)
	if p.handoff != nil {
		if c.handOff(core, now, p) {
			return
		}
		c.markIdle(p.handoff)
		later = true // enqueueWaiters flushes
	}
	delete(c.calls, p.changeCall) // there will be no answer
	if later {
		core.ReleaseLater(now, p.id)
	} else {
		core.Release(now, p.id)
	}
}

// loseGrant ends all holds of a grant. The mutex is held.
func (c *Client) loseGrant(p *grant, why error, at time.Duration) {
	p.over = true
	p.timeline.markEnded(at)
	delete(c.calls, p.changeCall)
	err := lostError("hold", p.lock.path, why)
	for _, h := range slices.Clone(p.holds) {
		c.endHold(h, lostError("hold", h.lock.path, why))
	}
	c.notify(c.opts.OnLost, p, err)
	c.warn("lock lost", p.lock, "token", p.token, "error", why)
}

// A holdContext is a context that ends with a hold.
type holdContext struct {
	cancel context.CancelCauseFunc
}

// A heldChain is a hold that a context carries, and the chain of its parent context.
type heldChain struct {
	hold  *Hold
	outer *heldChain
}

// heldChainKey is the key under which a context carries its chain of holds.
type heldChainKey struct{}

// Context returns a context that is done when parent is done, when the hold ends, or when
// the caller calls the returned function. If the hold was lost, its cause (context.Cause)
// wraps ErrLost.
//
// The context carries the hold, and the holds that parent carries. An Acquire under this
// context knows what its caller already holds, see [Lock.Reentrant].
//
// A goroutine ends the context, so the end can be late after a pause of the process. Err
// is never late.
func (h *Hold) Context(parent context.Context) (context.Context, context.CancelFunc) {
	outer, _ := parent.Value(heldChainKey{}).(*heldChain)
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, heldChainKey{}, &heldChain{hold: h, outer: outer}))
	hc := &holdContext{cancel: cancel}
	if err := h.attach(hc); err != nil {
		cancel(err)
		return ctx, func() {}
	}
	return ctx, func() {
		h.detach(hc)
		cancel(context.Canceled)
	}
}

// attach makes hc end with the hold. If the hold has already ended, attach returns why.
func (h *Hold) attach(hc *holdContext) error {
	h.Err() // advances the time
	c := h.grant.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.err == nil {
		if h.contexts == nil {
			h.contexts = map[*holdContext]struct{}{}
		}
		h.contexts[hc] = struct{}{}
	}
	return h.err
}

func (h *Hold) detach(hc *holdContext) {
	c := h.grant.client
	c.mu.Lock()
	delete(h.contexts, hc)
	c.mu.Unlock()
}

// heldIn returns the grants of this client in a chain of holds that are held now, the
// innermost first. The mutex is held.
func (c *Client) heldIn(chain *heldChain) []*grant {
	var own []*grant
	for at := chain; at != nil; at = at.outer {
		if h := at.hold; h.grant.client == c && h.err == nil {
			own = append(own, h.grant)
		}
	}
	return own
}
