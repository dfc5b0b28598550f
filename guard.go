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

// A call is a question about a hold that the core answers with one signal.
type call struct {
	ops      []zk.Op // the operations of Guard
	answer   chan queue.Signal
	onAnswer func(queue.Signal) // if not nil, called with the mutex held
}

// newCall registers a call. Its channel has room for the one answer, so sending the
// answer never blocks. The mutex is held.
func (c *Client) newCall(ops []zk.Op, onAnswer func(queue.Signal)) (uint64, *call) {
	c.lastCall++
	k := &call{ops: ops, answer: make(chan queue.Signal, 1), onAnswer: onAnswer}
	c.calls[c.lastCall] = k
	return c.lastCall, k
}

// finishCall passes the answer to the caller. The mutex is held.
func (c *Client) finishCall(s queue.Signal) {
	k := c.calls[s.Call]
	if k == nil {
		return
	}
	delete(c.calls, s.Call)
	if k.onAnswer != nil {
		k.onAnswer(s)
	}
	c.deferCall(func() { k.answer <- s })
}

// callOps returns the operations of a call that is not answered yet.
func (c *Client) callOps(n uint64) []zk.Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.calls[n]; k != nil {
		return k.ops
	}
	return nil
}

// Verify asks a quorum of the servers whether the lock is held, and returns nil if it was
// held at a moment between call and return. It is linearizable, and costs a write. An
// error that does not wrap ErrLost or ErrReleased means that there was no answer, not
// that the lock is lost.
//
// Verify fails with ErrInvalidLock if the name of the hold's znode is not unique, because
// the znode could belong to another client. That is the case for a [Client.NodeLock], and
// for a mutex or read-write lock with [WriteLockLayout] or a custom [Options].Layout.
func (h *Hold) Verify(ctx context.Context) error { return h.guard(ctx, "verify", nil) }

// Guard executes operations in ZooKeeper, all or none, and only if the lock is held at that
// moment. The transaction begins with checks of the hold's own znodes, so no pause of this
// process can separate the checks from the operations. It is a fenced write without a token.
//
// ops are operations that [zk.MultiOp] accepts: creates, deletes, sets, and checks.
// Reads, watches, and multis fail with zk.ErrInvalidOp, and nothing is done. Without ops,
// Guard is [Hold.Verify]. The caller must not modify the data that ops refer to until
// they are done, even after ctx has ended.
//
// Guard fails in one of three ways. The hold is lost: the error wraps ErrLost or
// ErrReleased, and nothing was done. One of ops failed: the error wraps its error, such
// as zk.ErrBadVersion, and has its index; nothing was done, and the lock is still held.
// The outcome is unknown: the error wraps zk.ErrConnectionLost or the error of ctx; the
// operations may have been done, or may still be done.
//
// Guard fails with ErrInvalidLock if the name of the hold's znode is not unique, because
// no check tells whose the znode is. That is the case for a [Client.NodeLock], and for a
// mutex or read-write lock with [WriteLockLayout] or a custom [Options].Layout, whose
// sequence numbers restart after a client deletes the whole lock. Use [Hold.Token] as a
// fencing token there.
func (h *Hold) Guard(ctx context.Context, ops ...zk.Op) error {
	return h.guard(ctx, "guard", slices.Clone(ops))
}

func (h *Hold) guard(ctx context.Context, op string, ops []zk.Op) error {
	fail := func(err error) error { return &Error{Op: op, Path: h.lock.path, Err: err} }
	if h.grant.lock.hasReusableNames() {
		return fail(fmt.Errorf("%w: the name of its znode has no GUID, so no check tells whether another client replaced the znode", ErrInvalidLock))
	}
	if ctx.Err() != nil {
		return fail(contextError(ctx))
	}
	k, err := h.startCall(ctx, ops)
	if err != nil {
		return fail(err)
	}
	select {
	case s := <-k.answer:
		if err := h.callError(s); err != nil {
			return fail(err)
		}
		return nil
	case <-ctx.Done():
		if len(ops) > 0 {
			return fail(fmt.Errorf("unknown whether the operations were done, or will be: %w", contextError(ctx)))
		}
		return fail(contextError(ctx))
	}
}

// startCall passes the call to the core. A downgrade in progress finishes first: until
// then, it is unknown which znode is the hold's.
func (h *Hold) startCall(ctx context.Context, ops []zk.Op) (k *call, err error) {
	err = h.whenSettled(ctx, func(core *queue.Core, now time.Duration) error {
		var n uint64
		n, k = h.grant.client.newCall(ops, nil)
		core.Guard(now, h.grant.id, n)
		return nil
	})
	return k, err
}

// callError returns the error that the answer to a call means, or nil.
func (h *Hold) callError(s queue.Signal) error {
	switch err := s.Err; {
	case err == nil:
		return nil
	case errors.Is(err, queue.ErrGone), errors.Is(err, queue.ErrExpired), errors.Is(err, queue.ErrNotHeld):
		if ended := h.Err(); ended != nil {
			return ended
		}
		return lostError("hold", h.lock.path, err)
	case s.Kind == queue.Verified && s.Failed >= 0:
		return fmt.Errorf("operation %d: %w", s.Failed, err)
	default:
		return publicError(err)
	}
}
