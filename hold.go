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

// A Hold is possession of a lock, from Acquire until Release or until it is
// lost. It is safe for concurrent use.
//
// What a Hold says is computed when it is asked: after a pause of the process
// or a suspend of the machine, the first look already says lost.
type Hold struct {
	possession *possession
	lock       *Lock

	closeDone sync.Once

	// Guarded by the client's mutex.
	done     chan struct{} // made when somebody asks for it
	err      error         // nil while held
	last     bool          // its release gave the possession back
	contexts map[*holdContext]struct{}
}

// Token returns the hold's fencing token: the czxid of its znode. It is above 0
// and grows with each grant of the lock, over restarts of clients and servers,
// even where the lock's znode was deleted in between; but see [Lock.Local]. A
// resource that refuses a token lower than the highest it has seen applies no stale
// write.
//
// The order is between holds that exclude each other: readers, and permits of a
// semaphore, may come with their tokens in any order. Fence writes by exclusive
// holds.
//
// The queues of an [All] have one token in common. An All that was taken InOrder,
// or has several semaphores and no queue, has none: it is 0, see [Hold.TokenOf]. A
// semaphore's is that of its first permit. Re-entering, and Downgrade, keep the token.
func (h *Hold) Token() int64 {
	if h.lock == h.possession.lock {
		return h.possession.token
	}
	return h.TokenOf(h.lock.path)
}

// TokenOf returns the fencing token for one of the locks that the hold has, by
// its name or path: of an [All], each lock may stand on a resource of its own.
// It is 0 for a lock that the hold does not have.
func (h *Hold) TokenOf(name string) int64 {
	path, err := lockPath(name)
	if err != nil {
		return 0
	}
	nodes, tokens := h.has()
	for i, node := range nodes {
		if p, ok := h.lock.partOf(node); ok && p.path == path {
			return tokens[i]
		}
	}
	return 0
}

// Node returns the path of the hold's own znode; of several, the first.
func (h *Hold) Node() string {
	nodes, _ := h.has()
	if len(nodes) == 0 {
		return ""
	}
	return nodes[0]
}

// Nodes returns the paths of all the hold's own znodes: an [All] has one for
// each of its locks, a semaphore one for each permit, and in the mixed layout
// there are two where there would be one. [Hold.Downgrade] changes them.
func (h *Hold) Nodes() []string {
	nodes, _ := h.has()
	return slices.Clone(nodes)
}

// has returns the hold's znodes with their tokens.
func (h *Hold) has() ([]string, []int64) {
	c := h.possession.client
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.possession.of(h.lock)
}

// Session returns the id of the ZooKeeper session that holds.
func (h *Hold) Session() int64 { return h.possession.session }

// Done returns a channel that is closed when the hold ends, however it ends: by
// Release, or before the ensemble can give the lock to somebody else.
func (h *Hold) Done() <-chan struct{} {
	h.Err() // lets time pass
	return h.ended()
}

// ended is Done without a look at the clock.
func (h *Hold) ended() <-chan struct{} {
	c := h.possession.client
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

// look lets time pass, and calls f with the mutex held.
func (h *Hold) look(f func(core *queue.Core, now time.Duration)) {
	c := h.possession.client
	c.step(func(core *queue.Core, now time.Duration) {
		core.Tick(now)
		c.apply(core, now)
		f(core, now)
	})
}

// Err returns nil while the lock is held, an error that wraps ErrLost and the
// reason when the hold was lost, and ErrReleased after Release. It looks at the
// clock and at nothing else.
func (h *Hold) Err() (err error) {
	h.look(func(*queue.Core, time.Duration) { err = h.err })
	return err
}

// Remaining returns how long the hold is safe if the servers are not heard of
// again; 0 when it has ended. It shrinks, and grows when a heartbeat is
// answered.
func (h *Hold) Remaining() (d time.Duration) {
	h.look(func(core *queue.Core, now time.Duration) {
		if at, ok := core.Deadline(); ok && h.err == nil {
			d = max(0, at-now)
		}
	})
	return d
}

// Release gives the lock back. The hold ends at once; the znode is deleted until
// it is known to be gone or its session to be over, in the background if ctx
// ends first, in which case an error says so. Releasing again returns what the
// first Release did. Releasing a hold that was lost returns the error of the
// loss: the work was not guarded to its end. That includes a hold that did not know of
// its loss: if the release finds the znode gone, the error wraps ErrLost and
// ErrDeleted. After a connection that was lost during the release, the client can't
// tell who deleted the znode, and Release returns nil.
//
// Where a hold was re-entered, each of the holds is released, in any order, and
// the last Release deletes the znode.
func (h *Hold) Release(ctx context.Context) error {
	last, err := h.release(false)
	if err != nil || !last {
		return err
	}
	p := h.possession
	select {
	case <-p.gone:
		return p.released
	default:
	}
	select {
	case <-p.gone:
		return p.released
	case <-ctx.Done():
		return &Error{Op: "release", Path: h.lock.path,
			Err: fmt.Errorf("not confirmed yet, and going on in the background: %w", contextError(ctx))}
	}
}

// ReleaseAsync gives the lock back as Release does, and does not wait for the
// servers to confirm it. It is as sure to be carried out: the znode is deleted, in
// the background, until it is known to be gone or its session to be over. An
// acquire by the same client right behind it goes out in one transaction with it,
// which takes one round trip for both, where Release takes one of its own.
//
// Whoever of this client waits next for the lock has it at once, as after Release.
// The error is nil, or that of the loss if the client knows that the hold was lost. A
// later Release waits for the servers and returns what came of it, such as a loss that
// the release found; OnRelease or OnLost reports it as well.
func (h *Hold) ReleaseAsync() error {
	last, err := h.release(true)
	if last {
		h.possession.client.flushSoon()
	}
	return err
}

// release ends the hold, and leaves the delete to flushSoon if later says so. It reports whether that gave the possession back, and
// an error if the hold was lost before.
func (h *Hold) release(later bool) (last bool, err error) {
	h.look(func(core *queue.Core, now time.Duration) {
		if h.err == nil {
			h.possession.client.giveUp(core, now, h, later)
		}
		last = h.last
		if errors.Is(h.err, ErrLost) {
			err = h.err
		}
	})
	return last, err
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
