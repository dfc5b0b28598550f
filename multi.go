package zklock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxAll bounds how many locks All takes: their names must fit one request.
const maxAll = 256

// defaultAllTimeout is what a zero Options.AllTimeout means.
const defaultAllTimeout = time.Minute

// All returns the lock that is all of locks, up to 256: mutexes, readers, writers
// and semaphores of one client. Its hold has all of them, and an acquire that
// fails has none.
//
// The queues are joined in one transaction, and share one token. So each waits
// only for transactions before its own, and Alls never deadlock with each other,
// whatever they have in common and in whatever order they name it. The semaphores
// are taken afterwards, in the order of their paths.
//
// A program that takes one of these locks while it holds another can deadlock
// with an All, as can Curator's InterProcessMultiLock. So an Acquire whose ctx
// has no deadline has one of [Options].AllTimeout; its error then wraps
// context.DeadlineExceeded. Where such programs take their locks in the order of
// the paths, use [Lock.InOrder].
//
// An All of nothing, of one path twice, of different clients' locks, or with a
// Reentrant lock or a NodeLock in it fails with ErrInvalidLock when it is used.
// An All within an All stands for its locks.
func All(locks ...*Lock) *Lock {
	all := &Lock{all: true}
	for _, l := range locks {
		if all.err == nil {
			all.err = all.add(l)
		}
	}
	all.path = nameOf(all.parts)
	if all.err == nil {
		all.err = all.sound()
	}
	return all
}

// add puts a lock into an All.
func (l *Lock) add(member *Lock) error {
	if member == nil {
		return fmt.Errorf("%w: a lock of All is nil", ErrInvalidLock)
	}
	if l.client == nil {
		l.client = member.client
	}
	l.parts = append(l.parts, member.parts...)
	refuse := func(why string) error {
		return fmt.Errorf("%w: %s may not be in an All: %s", ErrInvalidLock, member.path, why)
	}
	switch err := member.usable(); {
	case err != nil:
		return err
	case member.client != l.client:
		return refuse("it is another client's than the first one")
	case member.reentrant:
		return refuse("it is Reentrant")
	case member.turns > 1:
		return refuse("it is Local")
	case member.nodeLock():
		return refuse("a node lock can't join a queue")
	case member.inOrder:
		return refuse("it is InOrder; use that on the outer one")
	}
	return nil
}

// sound returns what is wrong with the parts of an All taken together.
func (l *Lock) sound() error {
	switch n := len(l.parts); {
	case n == 0:
		return fmt.Errorf("%w: an All of nothing", ErrInvalidLock)
	case n > maxAll:
		return fmt.Errorf("%w: an All of %d locks; %d are the most", ErrInvalidLock, n, maxAll)
	}
	used := map[string]bool{}
	for _, p := range l.parts {
		for _, node := range p.znodes() {
			if used[node] {
				return fmt.Errorf("%w: %s is twice in an All, which would wait for itself", ErrInvalidLock, node)
			}
			used[node] = true
		}
	}
	return nil
}

// nameOf names the locks of an All, for people.
func nameOf(parts []part) string {
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

// InOrder returns an [All] that takes its locks one after another in the order of
// their paths, byte by byte, each when the one before it is held; semaphores come
// last. It can't deadlock with programs that take several locks one by one in
// that same order, which the transaction of All can. It takes a round trip for
// each lock, and its locks have no common token: [Hold.Token] is 0, see
// [Hold.TokenOf]. Other locks fail with ErrInvalidLock.
func (l *Lock) InOrder() *Lock {
	return l.with(func(l *Lock) error {
		if !l.all {
			return fmt.Errorf("%w: only an All is taken in order", ErrInvalidLock)
		}
		l.inOrder = true
		l.parts = slices.Clone(l.parts)
		slices.SortStableFunc(l.parts, func(a, b part) int { return strings.Compare(a.path, b.path) })
		return nil
	})
}

// limit gives an All's acquire a deadline if its ctx has none.
func (l *Lock) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := l.client.opts.AllTimeout
	if limit == 0 {
		limit = defaultAllTimeout
	}
	if _, bounded := ctx.Deadline(); bounded || !l.all || limit < 0 {
		return ctx, func() {}
	}
	advice := "takes one of these locks while it holds another may be in a deadlock with this one, see Lock.InOrder"
	if l.inOrder {
		advice = "takes these locks in another order than that of their paths may be in a deadlock with this one"
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not granted within Options.AllTimeout, %v; a program that %s", limit, advice))
}
