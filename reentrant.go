package zklock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// Reentrant returns the lock for callers that may already hold it. Go has no identity of
// a goroutine, so re-entering depends on the context: an Acquire with a ctx that comes
// from [Hold.Context] of a hold of the same client on the same path returns at once. It
// returns a hold of its own on the same znode and with the same token. The last Release
// releases the lock.
//
// An exclusive hold can be re-entered exclusively and, by a reader, shared; the lock
// stays exclusive until all its holds are released. A shared hold can be re-entered
// shared. An exclusive acquire under the caller's own shared hold could never be granted,
// and fails with ErrUpgrade, whether the lock is Reentrant or not. Under a hold that has
// ended, an acquire is an ordinary one.
//
// A lock that is not Reentrant, acquired with the context of its own hold, would wait for
// itself forever, and fails with ErrReentry. Two cases do not wait for themselves, but
// enqueue, and can then wait for another client. A reader under its own reader can wait
// for a writer between the two. Further permits of a semaphore that has enough of them
// can wait for an acquire ahead that waits for the first permits.
//
// Semaphores and Alls cannot be re-entered; they fail with ErrInvalidLock.
func (l *Lock) Reentrant() *Lock {
	return l.derive(func(l *Lock) error {
		if l.all || l.components[0].mode == Permit {
			return fmt.Errorf("%w: a semaphore or an All cannot be Reentrant", ErrInvalidLock)
		}
		if l.maxHandoffs > 1 {
			return fmt.Errorf("%w: a lock with LocalHandoff cannot be Reentrant", ErrInvalidLock)
		}
		l.reentrant = true
		return nil
	})
}

// reenter checks what the caller already holds according to ctx. It returns a hold if it
// re-entered one, an error if an acquire would wait for itself, and neither if the
// acquire is an ordinary one.
func (l *Lock) reenter(ctx context.Context, try bool) (h *Hold, err error) {
	if ctx.Value(heldChainKey{}) == nil {
		return nil, nil
	}
	c := l.client
	c.step(func(core *queue.Core, now time.Duration) {
		core.Tick(now)
		c.apply(core, now)
		h, err = l.checkHeld(c.heldIn(ctx), try)
	})
	return h, err
}

// checkHeld returns the outcome of an acquire under these grants. The mutex is held.
func (l *Lock) checkHeld(own []*grant, try bool) (*Hold, error) {
	for _, part := range l.components {
		if part.mode == Permit {
			if taken := countPermits(own, part); taken > 0 && taken+part.semaphore.Permits > part.semaphore.Of {
				return nil, reentryError(part, try)
			}
			continue
		}
		for _, p := range own {
			switch has := p.modeFor(part); {
			case has == "":
				continue
			case has == Shared && part.mode == Exclusive:
				return nil, fmt.Errorf("%w (%s)", ErrUpgrade, part.path)
			case l.reentrant:
				return p.newHold(l), nil
			case has == Exclusive:
				return nil, reentryError(part, try)
			}
		}
	}
	return nil, nil
}

// reentryError returns the error of an acquire that would wait for itself. For a try, it
// also wraps ErrLocked.
func reentryError(of component, try bool) error {
	if try {
		return fmt.Errorf("%w: %w (%s)", ErrLocked, ErrReentry, of.path)
	}
	return fmt.Errorf("%w (%s)", ErrReentry, of.path)
}

// countPermits returns how many permits of a semaphore the grants have.
func countPermits(own []*grant, of component) int {
	n := 0
	for i, p := range own {
		if slices.Contains(own[:i], p) {
			continue
		}
		for _, has := range p.lock.components {
			if has.key() == of.key() {
				n += has.semaphore.Permits
			}
		}
	}
	return n
}
