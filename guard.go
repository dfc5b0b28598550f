package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A call is a question about a hold that the core will answer with one signal.
type call struct {
	ops    []zk.Op // what Guard does
	answer chan queue.Signal
	told   func(queue.Signal) // if not nil, called with the mutex held
}

// calling registers a call. Its answer's channel has room for the one answer, so
// that giving it never blocks. The mutex is held.
func (c *Client) calling(ops []zk.Op, told func(queue.Signal)) (uint64, *call) {
	c.calls++
	k := &call{ops: ops, answer: make(chan queue.Signal, 1), told: told}
	c.asking[c.calls] = k
	return c.calls, k
}

// answered ends a call. The mutex is held.
func (c *Client) answered(s queue.Signal) {
	k := c.asking[s.Call]
	if k == nil {
		return
	}
	delete(c.asking, s.Call)
	if k.told != nil {
		k.told(s)
	}
	c.afterwards(func() { k.answer <- s })
}

// opsOf returns the operations of a call that is not answered yet.
func (c *Client) opsOf(n uint64) []zk.Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.asking[n]; k != nil {
		return k.ops
	}
	return nil
}

// Verify asks a quorum of the servers whether the lock is held, and returns nil
// if it was at a moment between call and return. It is linearizable, and costs a
// write. An error that does not wrap ErrLost or ErrReleased says that no answer
// was to be had, not that the lock is lost.
//
// A hold whose znode's name is not unique fails with ErrInvalidLock: that of a
// [Client.NodeLock], and of a mutex or read-write lock with an [Options.Layout] of
// one's own. The znode may be there and somebody else's.
func (h *Hold) Verify(ctx context.Context) error { return h.guard(ctx, "verify", nil) }

// Guard does operations in ZooKeeper, all or none, and only if the lock is held
// when they are done: the transaction begins with checks of the hold's own
// znodes, which no pause of this process can separate from the rest. It is a fenced
// write, without a token.
//
// ops are what [zk.MultiOp] takes beside checks: creates, deletes, sets, and
// further checks; reads, watches and multis fail with zk.ErrInvalidOp and nothing
// is done. Without any, Guard is [Hold.Verify]. What ops refer to must not be
// changed before they are done, even after ctx has ended.
//
// There are three ways to fail. The hold is lost: the error wraps ErrLost (or
// ErrReleased), and nothing was done. One of ops failed: the error wraps its error,
// such as zk.ErrBadVersion, and gives its index; nothing was done, and the lock
// is held still. The outcome is unknown: the error wraps zk.ErrConnectionLost, or
// ctx's error, and the operations may have been done, or may yet be.
//
// A hold whose znode's name is not unique fails with ErrInvalidLock, since no check
// tells whose the znode is: that of a [Client.NodeLock], and of a mutex or
// read-write lock with [WriteLockLayout] or an [Options.Layout] of one's own, whose
// numbers begin anew where somebody deletes the whole lock. Fence with [Hold.Token] there.
func (h *Hold) Guard(ctx context.Context, ops ...zk.Op) error {
	return h.guard(ctx, "guard", slices.Clone(ops))
}

func (h *Hold) guard(ctx context.Context, op string, ops []zk.Op) error {
	fail := func(err error) error { return &Error{Op: op, Path: h.lock.path, Err: err} }
	if h.possession.lock.namesakes() {
		return fail(fmt.Errorf("%w: its znode's name has no GUID, so that no check tells whether it was deleted and made again by another", ErrInvalidLock))
	}
	if ctx.Err() != nil {
		return fail(contextError(ctx))
	}
	k, err := h.ask(ctx, ops)
	if err != nil {
		return fail(err)
	}
	select {
	case s := <-k.answer:
		if err := h.outcome(s); err != nil {
			return fail(err)
		}
		return nil
	case <-ctx.Done():
		if len(ops) > 0 {
			return fail(fmt.Errorf("unknown whether the operations are done, or will be: %w", contextError(ctx)))
		}
		return fail(contextError(ctx))
	}
}

// ask puts the question to the core. A downgrade that is under way comes first:
// until it is done, nobody knows which znode is the hold's.
func (h *Hold) ask(ctx context.Context, ops []zk.Op) (k *call, err error) {
	p := h.possession
	for {
		var changing chan struct{}
		h.look(func(core *queue.Core, now time.Duration) {
			err, changing = h.err, p.changing
			if err == nil && changing == nil {
				var n uint64
				n, k = p.client.calling(ops, nil)
				core.Guard(now, p.id, n)
			}
		})
		if k != nil || err != nil {
			return k, err
		}
		select {
		case <-changing:
		case <-h.ended():
		case <-ctx.Done():
			return nil, contextError(ctx)
		}
	}
}

// outcome says what the answer to a call means.
func (h *Hold) outcome(s queue.Signal) error {
	switch err := s.Err; {
	case err == nil:
		return nil
	case errors.Is(err, queue.ErrGone), errors.Is(err, queue.ErrExpired), errors.Is(err, queue.ErrNotHeld):
		if ended := h.Err(); ended != nil {
			return ended
		}
		return lost("hold", h.lock.path, err)
	case s.Kind == queue.Verified && s.Failed >= 0:
		return fmt.Errorf("operation %d: %w", s.Failed, err)
	default:
		return public(err)
	}
}
