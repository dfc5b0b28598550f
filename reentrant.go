package zklock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// Reentrant returns the lock for callers who may hold it already. Go has no
// identity of a goroutine to go by, so it goes by context: an Acquire under a ctx
// that comes from [Hold.Context] of a hold of the same client on the same path
// returns at once, with a hold of its own on the same znode and with the same
// token. The lock is given back by the last Release.
//
// An exclusive hold can be re-entered exclusively and, by a reader, shared; the
// lock stays exclusive until all its holds are released. A shared hold can be
// re-entered shared. An exclusive acquire under one's own shared hold could never
// be granted, and fails with ErrUpgrade, whether Reentrant or not. Under a hold
// that has ended, an acquire is an ordinary one.
//
// A lock that is not Reentrant, acquired under its own hold's ctx, would wait for
// itself for ever, and fails with ErrReentry. (A reader under its own reader's
// would not: it takes a place of its own in the queue, and can then wait for a
// writer between the two. So do further permits of a semaphore that has enough of
// them, which can then wait for somebody ahead who waits for the first.)
//
// Semaphores and Alls can't be re-entered: ErrInvalidLock.
func (l *Lock) Reentrant() *Lock {
	return l.with(func(l *Lock) error {
		if l.all || l.parts[0].mode == Permit {
			return fmt.Errorf("%w: a semaphore or an All can't be Reentrant", ErrInvalidLock)
		}
		if l.turns > 1 {
			return fmt.Errorf("%w: a Local lock can't be Reentrant", ErrInvalidLock)
		}
		l.reentrant = true
		return nil
	})
}

// enter looks at what the caller holds already, as ctx says. It returns a hold if
// it re-entered one, an error if an acquire would wait for itself, and neither if
// the acquire has to go its ordinary way.
func (l *Lock) enter(ctx context.Context, try bool) (h *Hold, err error) {
	if ctx.Value(carriedKey{}) == nil {
		return nil, nil
	}
	c := l.client
	c.step(func(core *queue.Core, now time.Duration) {
		core.Tick(now)
		c.apply(core, now)
		h, err = l.under(c.carriedBy(ctx), try)
	})
	return h, err
}

// under is what becomes of an acquire under these possessions. The mutex is held.
func (l *Lock) under(own []*possession, try bool) (*Hold, error) {
	for _, part := range l.parts {
		if part.mode == Permit {
			if taken := permits(own, part); taken > 0 && taken+part.semaphore.Permits > part.semaphore.Of {
				return nil, reentry(part, try)
			}
			continue
		}
		for _, p := range own {
			switch has := p.mode(part); {
			case has == "":
				continue
			case has == Shared && part.mode == Exclusive:
				return nil, fmt.Errorf("%w (%s)", ErrUpgrade, part.path)
			case l.reentrant:
				return p.view(l), nil
			case has == Exclusive:
				return nil, reentry(part, try)
			}
		}
	}
	return nil, nil
}

// reentry says that an acquire would wait for itself. A try says besides what it
// says of any lock that is held.
func reentry(of part, try bool) error {
	if try {
		return fmt.Errorf("%w: %w (%s)", ErrLocked, ErrReentry, of.path)
	}
	return fmt.Errorf("%w (%s)", ErrReentry, of.path)
}

// permits counts what possessions have of a semaphore.
func permits(own []*possession, of part) int {
	n := 0
	for i, p := range own {
		if slices.Contains(own[:i], p) {
			continue
		}
		for _, has := range p.lock.parts {
			if has.key() == of.key() {
				n += has.semaphore.Permits
			}
		}
	}
	return n
}
