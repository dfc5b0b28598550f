package checkup

import (
	"context"
	"errors"
	"path"
	"sync"

	"github.com/zklock/zklock/cmd/zklock/internal/servertime"
	"github.com/zklock/zklock/zk"
)

// maxParents bounds how many znodes above entries are asked for their ACL and their
// counts.
const maxParents = 2000

// probe makes a znode and deletes it, in one transaction that nobody sees: what it
// would have been like is in the answer, with the leader's time. It takes place in
// the first znode that is there, from the prefix upwards, and not in a lock.
func (f *Facts) probe(ctx context.Context, z *zk.Client) error {
	at := f.Prefix
	for at != "/" {
		_, there, err := z.Exists(ctx, at)
		if !answered(err) {
			return err
		}
		there = there || err != nil // what may not be read is there
		if there && !f.isLock(at) {
			break
		}
		f.Missing = f.Missing || at == f.Prefix && !there
		at = parentOf(at)
	}
	f.At = at
	now, err := servertime.Ask(ctx, z, at)
	f.Clock = Clock{Ahead: now.Ahead, Err: err}
	if errors.Is(err, servertime.ErrUntold) {
		return nil
	}
	if f.Probe = err; err != nil {
		f.Clock.Err = errors.New("nothing may be written there")
	}
	if err != nil && zk.Applied(err) == zk.AppliedUnknown {
		return err
	}
	return nil
}

// answered reports whether a server answered, be it that this is not permitted.
func answered(err error) bool { return err == nil || errors.Is(err, zk.ErrNoAuth) }

// isLock reports whether there is a lock at a path.
func (f *Facts) isLock(path string) bool {
	for _, l := range f.Locks {
		if l.Path == path {
			return true
		}
	}
	return false
}

// readers is how many znodes are asked for at a time.
const readers = 16

// parents reads the znodes that entries are in, or were: those of the locks, and
// the children of the prefix, which may be locks that nobody holds now.
func (f *Facts) parents(ctx context.Context, z *zk.Client) error {
	paths, err := f.above(ctx, z)
	if err != nil {
		return err
	}
	f.Parents = map[string]Parent{}
	var mu sync.Mutex // guards f.Parents and err
	var all sync.WaitGroup
	free := make(chan struct{}, readers)
	for _, path := range paths {
		free <- struct{}{}
		// Each ends with its read; all have when this returns.
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

// above are the paths of those znodes, each once, and no more than are read.
func (f *Facts) above(ctx context.Context, z *zk.Client) ([]string, error) {
	seen := map[string]bool{}
	var paths []string
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
	if f.Prefix == "/" {
		return paths, nil // what is there is anybody's
	}
	children, _, err := z.Children(ctx, f.Prefix)
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
		return nil, err
	}
	for _, child := range children {
		add(path.Join(f.Prefix, child))
	}
	return paths, nil
}

// readParent reads one of them; false if it is not there, or ephemeral.
func readParent(ctx context.Context, z *zk.Client, path string) (p Parent, there bool, err error) {
	p = Parent{Path: path}
	p.ACL, p.Stat, p.Unread = z.GetACL(ctx, path)
	switch {
	case errors.Is(p.Unread, zk.ErrNoNode):
		return p, false, nil
	case errors.Is(p.Unread, zk.ErrNoAuth):
		// Some versions let everybody see this much. Else its Stat stays empty.
		p.Stat, _, err = z.Exists(ctx, path)
		if !answered(err) {
			return p, false, err
		}
	case p.Unread != nil:
		return p, false, p.Unread
	}
	return p, p.Stat.EphemeralOwner == 0, nil
}
