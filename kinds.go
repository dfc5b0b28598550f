package zklock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// An RWMutex is a lock that any number of readers hold together, or one writer alone.
// Like a [Lock], it only names the lock: it is immutable and safe for concurrent use. The
// locks of the zero RWMutex fail with ErrInvalidLock.
type RWMutex struct {
	reader, writer *Lock
}

// RWMutex returns the read-write lock with this name; see [Client.Mutex] for names.
//
// Readers and writers are granted in order of arrival: a waiting writer stops later
// readers. On ZooKeeper, the lock is the queue of Curator's InterProcessReadWriteLock,
// and excludes its holders.
//
// One path is one queue: readers and writers also exclude this package's mutexes with the
// same name. Curator's InterProcessMutex, kazoo's Lock, and ZooKeeper's WriteLock do not
// wait for readers. A reader that finds their znodes on the path fails with
// ErrForeignMutex, unless [Options].AllowForeignMutex is set. This covers the znodes that
// are there when the acquire begins: the check finds wrong configurations, and excludes
// no mutex that arrives later. [KazooLayout] and [MixedLayout] cannot detect kazoo's Lock.
func (c *Client) RWMutex(name string) *RWMutex {
	m := &RWMutex{
		reader: c.queueLock(name, queue.Shared, false),
		writer: c.queueLock(name, queue.Exclusive, true),
	}
	if layout := c.opts.Layout; m.reader.err == nil && !layout.hasReaders() {
		m.reader.err = fmt.Errorf("%w: %s has no readers", ErrInvalidLock, layout)
	}
	return m
}

// Reader returns the shared side. A holder that needs to write must release it first, and
// another client may write in between. An acquire of the writer under the caller's own
// reader could never be granted, and fails with ErrUpgrade.
func (m *RWMutex) Reader() *Lock { return m.reader }

// Writer returns the exclusive side. [Hold.Downgrade] makes its hold shared without
// letting another writer in between.
func (m *RWMutex) Writer() *Lock { return m.writer }

// Downgrade makes the exclusive hold of a writer shared: other readers are granted, and
// no other writer is granted in between. The hold and its token stay the same;
// [Hold.Node] changes. The data of the new znode keep the token, for people and tools.
//
// Only a hold of [RWMutex.Writer] can be downgraded, once, and only while it is not
// re-entered; otherwise the error wraps ErrInvalidLock. If the error wraps ErrLost, the
// hold is lost. If ctx ends first, the downgrade is not confirmed and continues in the
// background; [Hold.Verify] waits for it. If other clients change the data of the znode
// before each of eight attempts, Downgrade fails with zk.ErrBadVersion, and the hold stays a
// writer's.
//
// The znodes are those of Curator's InterProcessReadWriteLock since 5.5.0: the reader has
// the sequence number of the writer.
func (h *Hold) Downgrade(ctx context.Context) error {
	fail := func(err error) error { return &Error{Op: "downgrade", Path: h.lock.path, Err: err} }
	if ctx.Err() != nil {
		return fail(contextError(ctx))
	}
	k, err := h.downgrade(ctx)
	if err != nil {
		return fail(err)
	}
	if err := h.awaitChange(ctx, k); err != nil {
		return fail(err)
	}
	return nil
}

// downgrade starts the downgrade, if it is allowed. A SetValue in progress finishes first,
// because the new znode gets its value.
func (h *Hold) downgrade(ctx context.Context) (k *call, err error) {
	p := h.grant
	c := p.client
	err = h.checkDowngrade()
	if err != nil {
		return nil, err
	}
	err = h.whenSettled(ctx, func(core *queue.Core, now time.Duration) error {
		if err := p.downgradable(); err != nil {
			return err
		}
		p.shared = true // until the answer, no exclusive acquire may re-enter
		data, err := p.data(p.value)
		if err != nil {
			p.shared = false
			return err
		}
		p.changing = make(chan struct{})
		p.changeCall, k = c.newCall(nil, p.finishDowngrade)
		core.Downgrade(now, p.id, data, p.changeCall)
		return nil
	})
	return k, err
}

// checkDowngrade returns why the hold cannot be downgraded now, or nil.
func (h *Hold) checkDowngrade() (err error) {
	h.update(func(*queue.Core, time.Duration) {
		if err = h.err; err == nil {
			err = h.grant.downgradable()
		}
	})
	return err
}

// downgradable returns why the grant cannot be downgraded, or nil. The mutex is held.
func (p *grant) downgradable() error {
	switch {
	case !p.lock.isWriter() || p.shared:
		return fmt.Errorf("%w: only the hold of a writer can be downgraded, and only once", ErrInvalidLock)
	case len(p.holds) > 1:
		return fmt.Errorf("%w: the hold was re-entered %d times; release those holds first", ErrInvalidLock, len(p.holds)-1)
	}
	return nil
}

// finishDowngrade takes the answer to a downgrade. The mutex is held.
func (p *grant) finishDowngrade(s queue.Signal) {
	p.settle()
	if s.Err != nil {
		p.shared = false
		return
	}
	// Callers may still have the old slices, so these are new ones.
	p.nodes, p.tokens = []string{s.Node}, nil
	if len(s.Nodes) > 0 {
		p.nodes = s.Nodes
	}
	for range p.nodes {
		p.tokens = append(p.tokens, p.token)
	}
}

// isWriter reports whether the lock is the writer of one read-write lock.
func (l *Lock) isWriter() bool {
	return !l.all && l.components[0].mode == Exclusive && l.components[0].member.Writer
}

// Bounds of semaphores. One multi creates all permits of a hold, and must fit a frame of
// the servers.
const (
	maxPermits        = 1 << 20
	maxPermitsPerHold = 1024
)

// Semaphore returns the lock with this name that n holders may hold at once, from 1 to
// 1048576; see [Client.Mutex] for names. Its [Hold] is one permit, or several:
// [Lock.Permits].
//
// Permits are granted in order of arrival. On ZooKeeper, the lock is Curator's
// InterProcessSemaphoreV2; InterProcessSemaphoreMutex is the same with n = 1. All clients
// must use the same n. This package writes n next to the permits, and an acquire with
// another n fails with ErrPermits. Curator does not write its n. To change the number while
// the semaphore is in use, see [Client.ResizableSemaphore].
//
// Curator acquires several permits one by one. It can wait for a permit while an acquire
// of this package waits for the next one: if both use the same path, give acquires a time
// limit.
//
// A semaphore does not exclude a mutex or a read-write lock with the same name. The znodes of
// a semaphore are the two below its path that are named locks, which is a mutex, and leases. Do
// not use either name for a lock.
//
// kazoo's semaphore is a different recipe: with the kazoo layout, a semaphore fails with
// ErrInvalidLock. With every other layout, the znodes of a semaphore have Curator's
// names.
func (c *Client) Semaphore(name string, n int) *Lock {
	l := c.semaphore(name, n)
	if l.err == nil && (n < 1 || n > maxPermits) {
		l.err = fmt.Errorf("%w: a semaphore has 1 to %d permits, not %d", ErrInvalidLock, maxPermits, n)
	}
	return l
}

// semaphore returns the semaphore with n permits, or with the stored size if n is 0.
func (c *Client) semaphore(name string, n int) *Lock {
	path, err := parseName(name, c.opts.Layout)
	if err == nil && c.opts.Layout.kind == queue.Kazoo {
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
		limit := maxPermitsPerHold
		if n := p.semaphore.Of; n > 0 { // otherwise an acquire compares k with the stored size
			limit = min(limit, n)
		}
		if k < 1 || k > limit {
			return fmt.Errorf("%w: 1 to %d permits can be held at once, not %d", ErrInvalidLock, limit, k)
		}
		p.semaphore.Permits = k
		l.components = []component{p}
		return nil
	})
}

// maxAll bounds how many locks an All has: their names must fit one request.
const maxAll = 256

// defaultAllTimeout applies if Options.AllTimeout is zero.
const defaultAllTimeout = time.Minute

// All returns the lock that consists of all of locks: up to 256 mutexes, readers,
// writers, and semaphores of one client. Its hold has all of them. An acquire that fails
// has none.
//
// An acquire enqueues for all mutexes, readers, and writers in one transaction, and they
// share one token. So each All waits only for transactions before its own. Alls never
// deadlock with each other, whichever locks they have in common and in whichever order they
// name them. The semaphores are acquired afterwards, in the order of their paths.
//
// A program that acquires one of these locks while it holds another can deadlock with an
// All, as it can with Curator's InterProcessMultiLock. Therefore an Acquire whose ctx has
// no deadline gets the deadline [Options].AllTimeout; its error then wraps
// context.DeadlineExceeded. If such programs acquire their locks in the order of the
// paths, use [Lock.InOrder].
//
// An All of no locks, of one path twice, of locks of different clients, or with a
// Reentrant lock or a NodeLock fails with ErrInvalidLock when it is used. An All within
// an All stands for its locks.
func All(locks ...*Lock) *Lock {
	all := &Lock{all: true}
	for _, l := range locks {
		if all.err == nil {
			all.err = all.add(l)
		}
	}
	all.path = describe(all.components)
	if all.err == nil {
		all.err = all.checkComponents()
	}
	return all
}

// add adds a lock to an All.
func (l *Lock) add(member *Lock) error {
	if member == nil {
		return fmt.Errorf("%w: a lock of All is nil", ErrInvalidLock)
	}
	if l.client == nil {
		l.client = member.client
	}
	l.components = append(l.components, member.components...)
	refuse := func(why string) error {
		return fmt.Errorf("%w: %s cannot be in an All: %s", ErrInvalidLock, member.path, why)
	}
	switch err := member.validate(); {
	case err != nil:
		return err
	case member.client != l.client:
		return refuse("it belongs to another client than the first lock")
	case member.reentrant:
		return refuse("it is Reentrant")
	case member.maxHandoffs > 1:
		return refuse("it has a LocalHandoff")
	case member.value != "":
		return refuse("it has a value")
	case member.isNodeLock():
		return refuse("a node lock has no queue")
	case member.inOrder:
		return refuse("it is InOrder; use InOrder on the outer All")
	}
	return nil
}

// checkComponents returns why the components of an All cannot be combined, or nil.
func (l *Lock) checkComponents() error {
	switch n := len(l.components); {
	case n == 0:
		return fmt.Errorf("%w: an All of no locks", ErrInvalidLock)
	case n > maxAll:
		return fmt.Errorf("%w: an All of %d locks; at most %d are allowed", ErrInvalidLock, n, maxAll)
	}
	used := map[string]bool{}
	for _, p := range l.components {
		for _, node := range p.paths() {
			if used[node] {
				return fmt.Errorf("%w: %s is twice in an All, which would wait for itself", ErrInvalidLock, node)
			}
			used[node] = true
		}
	}
	return nil
}

// describe returns a human-readable list of the locks of an All.
func describe(parts []component) string {
	const most = 3
	var names []string
	for i, p := range parts {
		if i == most && len(parts) > most+1 {
			names = append(names, fmt.Sprintf("%d more", len(parts)-most))
			break
		}
		names = append(names, p.path)
	}
	return strings.Join(names, " + ")
}

// InOrder returns an [All] that acquires its locks one after another in the order of
// their paths, byte by byte, each while it holds those before it. Semaphores come last.
// It cannot deadlock with programs that acquire several locks one by one in the same
// order; the transaction of a plain All can. It takes a round trip for each lock, and its
// locks have no common token: [Hold.Token] returns 0, see [Hold.TokenOf]. Other locks
// fail with ErrInvalidLock.
func (l *Lock) InOrder() *Lock {
	return l.derive(func(l *Lock) error {
		if !l.all {
			return fmt.Errorf("%w: only an All can be InOrder", ErrInvalidLock)
		}
		l.inOrder = true
		l.components = slices.Clone(l.components)
		slices.SortStableFunc(l.components, func(a, b component) int { return strings.Compare(a.path, b.path) })
		return nil
	})
}

// withAllTimeout adds the deadline of an All's acquire if its ctx has none.
func (l *Lock) withAllTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := l.client.opts.AllTimeout
	if limit == 0 {
		limit = defaultAllTimeout
	}
	if _, bounded := ctx.Deadline(); bounded || !l.all || limit < 0 {
		return ctx, func() {}
	}
	advice := "acquires one of these locks while it holds another can cause a deadlock, see Lock.InOrder"
	if l.inOrder {
		advice = "acquires these locks in another order than that of their paths can cause a deadlock"
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not granted within Options.AllTimeout, %v; a program that %s", limit, advice))
}
