package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/queue"
)

// A Hold is possession of a lock, from Acquire until Release or until it is
// lost. It is safe for concurrent use.
//
// What a Hold says is computed when it is asked: after a pause of the process
// or a suspend of the machine, the first look already says lost.
type Hold struct {
	lock    *Lock
	id      queue.ID
	token   int64
	node    string
	session int64
	begun   time.Duration

	done      chan struct{}
	closeDone sync.Once
	gone      chan struct{} // closed when the release is known to have been carried out, or failed

	// Guarded by the client's mutex.
	err      error // nil while held
	giving   bool  // Release was called while it was held
	released error // why the released znode could not be deleted
	contexts map[*holdContext]struct{}
}

// Token returns the hold's fencing token: the czxid of its znode. It is above 0
// and grows with each grant of the lock, over restarts of clients and servers,
// even where the lock's znode was deleted in between. A resource that refuses a
// token lower than the highest it has seen applies no stale write.
func (h *Hold) Token() int64 { return h.token }

// Node returns the path of the hold's own znode.
func (h *Hold) Node() string { return h.node }

// Session returns the id of the ZooKeeper session that holds.
func (h *Hold) Session() int64 { return h.session }

// Done returns a channel that is closed when the hold ends, however it ends: by
// Release, or before the ensemble can give the lock to somebody else.
func (h *Hold) Done() <-chan struct{} {
	if h.Err() != nil {
		h.closeDone.Do(func() { close(h.done) })
	}
	return h.done
}

// Err returns nil while the lock is held, an error that wraps ErrLost and the
// reason when the hold was lost, and ErrReleased after Release. It looks at the
// clock and at nothing else.
func (h *Hold) Err() error {
	var err error
	h.lock.client.step(func(core *queue.Core, now time.Duration) {
		core.Tick(now)
		h.lock.client.apply(core)
		err = h.err
	})
	return err
}

// Remaining returns how long the hold is safe if the servers are not heard of
// again; 0 when it has ended. It shrinks, and grows when a heartbeat is
// answered.
func (h *Hold) Remaining() time.Duration {
	var d time.Duration
	h.lock.client.step(func(core *queue.Core, now time.Duration) {
		core.Tick(now)
		h.lock.client.apply(core)
		if at, ok := core.Deadline(); ok && h.err == nil {
			d = max(0, at-now)
		}
	})
	return d
}

// Verify asks a quorum of the servers whether the lock is held, and returns nil
// if it was at a moment between call and return. It is linearizable, and costs a
// write. An error that does not wrap ErrLost or ErrReleased says that no answer
// was to be had, not that the lock is lost.
func (h *Hold) Verify(ctx context.Context) error {
	fail := func(err error) error { return &Error{Op: "verify", Path: h.lock.path, Err: err} }
	if err := h.Err(); err != nil {
		return fail(err)
	}
	answer := h.lock.client.verify(h)
	select {
	case err := <-answer:
		switch {
		case err == nil:
			return nil
		case errors.Is(err, queue.ErrGone), errors.Is(err, queue.ErrExpired), errors.Is(err, queue.ErrNotHeld):
			if held := h.Err(); held != nil {
				return fail(held)
			}
			return fail(lost(h.lock.path, err))
		}
		return fail(public(err))
	case <-ctx.Done():
		return fail(contextError(ctx))
	}
}

// Release gives the lock back. The hold ends at once; the znode is deleted until
// it is known to be gone or its session to be over, in the background if ctx
// ends first, in which case an error says so. Releasing again returns what the
// first Release did. Releasing a hold that was lost returns the error of the
// loss: the work was not guarded to its end.
func (h *Hold) Release(ctx context.Context) error {
	if err := h.lock.client.release(h); err != nil {
		return err
	}
	select {
	case <-h.gone:
		return h.released
	default:
	}
	select {
	case <-h.gone:
		return h.released
	case <-ctx.Done():
		return &Error{Op: "release", Path: h.lock.path,
			Err: fmt.Errorf("not confirmed yet, and going on in the background: %w", contextError(ctx))}
	}
}

// do calls f under the hold and releases it.
func (h *Hold) do(ctx context.Context, f func(context.Context, *Hold) error) (err error) {
	inner, cancel := h.Context(ctx)
	defer cancel()
	defer func() {
		loss := h.Err()
		// Whatever became of ctx, the release is worth waiting for a while: the
		// caller may come back at once. It goes on in the background anyway.
		wait, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
		defer stop()
		released := h.Release(wait)
		switch {
		case errors.Is(loss, ErrLost):
			err = errors.Join(err, loss)
		case errors.Is(released, ErrLost):
			err = errors.Join(err, released)
		}
	}()
	return f(inner, h)
}

// releaseWait bounds how long Do waits for a release to be confirmed.
const releaseWait = 5 * time.Second

// now reads the clock that runs through suspend.
func now() time.Duration { return boottime.Now() }
