package zklock

import (
	"fmt"

	"github.com/zklock/zklock/internal/queue"
)

// Bounds of semaphores. One multi creates all permits of a hold, and must fit a frame of
// the servers.
const (
	maxPermits        = 1 << 20
	maxPermitsPerHold = 1024
)

// gateOf returns the path of the queue for the permits of a semaphore.
func gateOf(path string) string { return path + "/locks" }

// leasesOf returns the path whose children are the permits of a semaphore.
func leasesOf(path string) string { return path + "/leases" }

// Semaphore returns the lock with this name that n holders may hold at once, from 1 to
// 1048576; see [Client.Mutex] for names. Its [Hold] is one permit, or several:
// [Lock.Permits].
//
// Permits are granted in order of arrival. On ZooKeeper, the lock is Curator's
// InterProcessSemaphoreV2; InterProcessSemaphoreMutex is the same with n = 1. All clients
// must use the same n. This package writes n next to the permits, and an acquire with
// another n fails with ErrPermits. Curator does not write its n.
//
// Curator acquires several permits one by one. It can wait for a permit while an acquire
// of this package waits for the next one: if both use the same path, give acquires a time
// limit.
//
// The znodes of a semaphore are the two below its path that are named locks, which is a
// mutex, and leases. Do not use either name for a lock.
//
// kazoo's semaphore is a different recipe: with the kazoo layout, a semaphore fails with
// ErrInvalidLock. With every other layout, the znodes of a semaphore have Curator's
// names.
func (c *Client) Semaphore(name string, n int) *Lock {
	path, err := parseName(name, c.opts.Layout)
	switch {
	case err != nil:
	case n < 1 || n > maxPermits:
		err = fmt.Errorf("%w: a semaphore has 1 to %d permits, not %d", ErrInvalidLock, maxPermits, n)
	case c.opts.Layout.kind == queue.Kazoo:
		err = fmt.Errorf("%w: kazoo's semaphore is a different recipe and would not exclude this one; use a client with Curator's layout, on another path", ErrInvalidLock)
	}
	return c.newLock(component{path: path, mode: Permit, semaphore: queue.Semaphore{Path: path, Permits: 1, Of: n}}, err)
}

// Permits returns the semaphore with holds of k permits, from 1 to the number of permits,
// but at most 1024. All k permits are granted together, so holders of several permits
// cannot deadlock with each other. Other locks fail with ErrInvalidLock.
func (l *Lock) Permits(k int) *Lock {
	return l.derive(func(l *Lock) error {
		if l.all || l.components[0].mode != Permit {
			return fmt.Errorf("%w: only a semaphore has permits", ErrInvalidLock)
		}
		p := l.components[0]
		if limit := min(p.semaphore.Of, maxPermitsPerHold); k < 1 || k > limit {
			return fmt.Errorf("%w: 1 to %d permits can be held at once, not %d", ErrInvalidLock, limit, k)
		}
		p.semaphore.Permits = k
		l.components = []component{p}
		return nil
	})
}
