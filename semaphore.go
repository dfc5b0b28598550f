package zklock

import (
	"fmt"

	"github.com/zklock/zklock/internal/queue"
)

// Bounds of semaphores. A hold's permits are made in one multi, which has to
// fit a frame of the servers'.
const (
	maxPermits = 1 << 20
	maxTaken   = 1024
)

// gateOf is the path of the queue before a semaphore's permits.
func gateOf(path string) string { return path + "/locks" }

// leasesOf is the path below which a semaphore's permits are.
func leasesOf(path string) string { return path + "/leases" }

// Semaphore returns the lock with this name that n may hold at once, from 1 to
// 1048576; see [Client.Mutex] for names. Its [Hold] is one permit, or several:
// [Lock.Permits].
//
// Permits are given in order of arrival. On ZooKeeper it is Curator's
// InterProcessSemaphoreV2, of which InterProcessSemaphoreMutex is the one with
// n = 1. Everybody must use the same n. This package writes it beside the
// permits, and an acquire with another n fails with ErrPermits; Curator keeps its
// n to itself.
//
// Curator's acquire of several permits takes them one by one and can wait for a
// permit while one of ours waits for the next: where it is used on the same path,
// give acquires a time limit.
//
// kazoo's semaphore is another recipe: in its layout a semaphore fails with
// ErrInvalidLock. Whatever other layout is chosen, a semaphore's znodes have
// Curator's names.
func (c *Client) Semaphore(name string, n int) *Lock {
	path, err := c.lockPath(name)
	switch {
	case err != nil:
	case n < 1 || n > maxPermits:
		err = fmt.Errorf("%w: a semaphore has 1 to %d permits, not %d", ErrInvalidLock, maxPermits, n)
	case c.opts.Layout.kind == queue.Kazoo:
		err = fmt.Errorf("%w: kazoo's semaphore is another recipe, which this package's would not exclude; use a client with Curator's layout, on a path of its own", ErrInvalidLock)
	}
	return c.lock(part{path: path, mode: Permit, semaphore: queue.Semaphore{Path: path, Permits: 1, Of: n}}, err)
}

// Permits returns the semaphore with holds of k permits, from 1 to as many as
// there are, but at most 1024. They are taken together, so that holders of
// several can't deadlock with each other. Other locks fail with ErrInvalidLock.
func (l *Lock) Permits(k int) *Lock {
	return l.with(func(l *Lock) error {
		if l.all || l.parts[0].mode != Permit {
			return fmt.Errorf("%w: only a semaphore has permits", ErrInvalidLock)
		}
		p := l.parts[0]
		if limit := min(p.semaphore.Of, maxTaken); k < 1 || k > limit {
			return fmt.Errorf("%w: 1 to %d permits can be held at once, not %d", ErrInvalidLock, limit, k)
		}
		p.semaphore.Permits = k
		l.parts = []part{p}
		return nil
	})
}
