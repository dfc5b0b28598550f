package zklock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxAll bounds how many locks an All has: their names must fit one request.
const maxAll = 256

// defaultAllTimeout applies if Options.AllTimeout is zero.
const defaultAllTimeout = time.Minute

// All returns the lock that consists of all of locks: up to 256 mutexes, readers,
// writers, and semaphores of one client. Its hold has all of them. An acquire that fails
// has none.
//
// One transaction enters all queues, and they share one token. So each All waits only for
// transactions before its own. Alls never deadlock with each other, whichever locks they
// have in common and in whichever order they name them. The semaphores are acquired
// afterwards, in the order of their paths.
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
