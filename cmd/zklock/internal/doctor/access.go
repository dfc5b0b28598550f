package doctor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// maxParents limits for how many parents of entries doctor reads the ACL and the Stat.
const maxParents = 2000

// probe creates a znode and deletes it in one transaction, which no other client sees. The
// answer has the Stat that the znode had, with the leader's time. probe uses the first
// znode that exists, from the prefix upwards, and that is not a lock.
func (f *Facts) probe(ctx context.Context, z *zk.Client) error {
	at := f.Prefix
	for at != "/" {
		_, there, err := z.Exists(ctx, at)
		if !answered(err) {
			return err
		}
		there = there || err != nil // an unreadable znode exists
		if there && !f.isLock(at) {
			break
		}
		f.Missing = f.Missing || at == f.Prefix && !there
		at = parentOf(at)
	}
	f.At = at
	now, err := inspect.ServerTime(ctx, z, at)
	f.Clock = Clock{Ahead: now.Ahead, Err: err}
	if errors.Is(err, inspect.ErrNoServerTime) {
		return nil
	}
	if f.Probe = err; err != nil {
		f.Clock.Err = fmt.Errorf("you may not create a znode below %s", legible.Path(at))
	}
	if err != nil && zk.Applied(err) == zk.AppliedUnknown {
		return err
	}
	return nil
}

// answered reports whether a server answered, even with a refusal.
func answered(err error) bool { return err == nil || errors.Is(err, zk.ErrNoAuth) }

// isLock reports whether a lock is at a path.
func (f *Facts) isLock(path string) bool {
	return slices.ContainsFunc(f.Locks, func(l *inspect.Lock) bool { return l.Path == path })
}

// readers is the number of concurrent reads.
const readers = 16

// parents reads the parents of entries: those of the locks, and the children of the
// prefix, which may be locks without a holder, with the parents in semaphores. It reads at most
// maxParents znodes.
func (f *Facts) parents(ctx context.Context, z *zk.Client) error {
	paths, ofEntries, err := f.above(ctx, z)
	if err != nil {
		return err
	}
	f.Parents = map[string]Parent{}
	if err := f.readParents(ctx, z, paths); err != nil {
		return err
	}
	var inside []string
	for _, path := range paths[ofEntries:] {
		p, there := f.Parents[path]
		if !there || p.Unread == nil && p.Stat.NumChildren == 0 {
			continue // it is not a semaphore
		}
		for _, at := range []string{queue.GatePath(path), queue.LeasesPath(path)} {
			if _, known := f.Parents[at]; !known {
				inside = append(inside, at)
			}
		}
	}
	return f.readParents(ctx, z, inside[:min(len(inside), maxParents-len(paths))])
}

// readParents reads these parents, unless they are missing or ephemeral.
func (f *Facts) readParents(ctx context.Context, z *zk.Client, paths []string) (err error) {
	var mu sync.Mutex // guards f.Parents and err
	var all sync.WaitGroup
	free := make(chan struct{}, readers)
	for _, path := range paths {
		free <- struct{}{}
		// Each goroutine ends with its read, and all end before readParents returns.
		all.Go(func() {
			defer func() { <-free }()
			p, there, failed := readParent(ctx, z, path)
			mu.Lock()
			defer mu.Unlock()
			if there {
				f.Parents[path] = p
			}
			if err == nil {
				err = failed
			}
		})
	}
	all.Wait()
	return err
}

// above returns the paths of these znodes, except those in semaphores without a holder, without
// duplicates, at most maxParents. The first ones, ofEntries, have entries.
func (f *Facts) above(ctx context.Context, z *zk.Client) (paths []string, ofEntries int, err error) {
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] && len(paths) < maxParents {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	for _, l := range f.Locks {
		for _, e := range l.Entries {
			if e.Node != e.Path {
				add(path.Dir(e.Node))
			}
		}
	}
	ofEntries = len(paths)
	if f.Prefix == "/" {
		return paths, ofEntries, nil // other programs may own these znodes
	}
	children, _, err := z.Children(ctx, f.Prefix)
	// If the list is too large, the walk reports that.
	tooLarge := errors.Is(err, zk.ErrReplyTooLarge) || errors.Is(err, zk.ErrQuotaExceeded)
	if !answered(err) && !errors.Is(err, zk.ErrNoNode) && !tooLarge {
		return nil, 0, err
	}
	for _, child := range children {
		add(path.Join(f.Prefix, child))
	}
	return paths, ofEntries, nil
}

// readParent reads one parent. It returns false if the znode is missing or ephemeral.
func readParent(ctx context.Context, z *zk.Client, path string) (p Parent, there bool, err error) {
	p = Parent{Path: path}
	p.ACL, p.Stat, p.Unread = z.GetACL(ctx, path)
	switch {
	case errors.Is(p.Unread, zk.ErrNoNode):
		return p, false, nil
	case errors.Is(p.Unread, zk.ErrNoAuth):
		// Some versions permit this read without READ. Otherwise the Stat stays empty.
		p.Stat, _, err = z.Exists(ctx, path)
		if !answered(err) {
			return p, false, err
		}
	case p.Unread != nil:
		return p, false, p.Unread
	}
	return p, p.Stat.EphemeralOwner == 0, nil
}
