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

// isTooLarge reports whether an answer exceeds a limit of the client or of the server.
func isTooLarge(err error) bool {
	return errors.Is(err, zk.ErrReplyTooLarge) || errors.Is(err, zk.ErrQuotaExceeded)
}

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
	if err := readParents(ctx, z, f.Parents, paths); err != nil {
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
	return readParents(ctx, z, f.Parents, inside[:min(len(inside), maxParents-len(paths))])
}

// readParents adds these parents to found, unless they are missing or ephemeral.
func readParents(ctx context.Context, z *zk.Client, found map[string]Parent,
	paths []string) (err error) {
	var mu sync.Mutex // guards found and err
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
				found[path] = p
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
	if !answered(err) && !errors.Is(err, zk.ErrNoNode) && !isTooLarge(err) {
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

// replaceable finds the closed znodes at and above the locks that other clients can delete while
// they are empty, and create again with another ACL: those without a permanent child, in a znode
// that permits DELETE or ADMIN to every client. It reads at most maxParents ACLs, and as many
// children.
func (f *Facts) replaceable(ctx context.Context, z *zk.Client) error {
	levels := map[string]Parent{}
	var paths []string
	add := func(at string) {
		for len(paths) < maxParents {
			if _, known := levels[at]; known {
				return
			}
			if levels[at] = f.Parents[at]; levels[at].Path == "" {
				paths = append(paths, at)
			}
			if at == "/" {
				return
			}
			at = path.Dir(at)
		}
	}
	add(f.Prefix)
	for _, l := range f.Locks {
		add(l.Path)
	}
	if err := readParents(ctx, z, levels, paths); err != nil {
		return err
	}
	reads := 0
	for at, p := range levels {
		above := levels[path.Dir(at)]
		closed := p.ACL != nil && worldPerms(p.ACL)&(zk.PermCreate|replaces) == 0
		if at == "/" || !closed || worldPerms(above.ACL)&replaces == 0 {
			continue
		}
		kept, err := hasPermanentChild(ctx, z, p, &reads)
		if err != nil {
			return err
		}
		if !kept {
			f.Replaceable = append(f.Replaceable, at)
		}
	}
	slices.Sort(f.Replaceable)
	return nil
}

// replaces are the permissions with which a client can delete the children of a znode: one with
// ADMIN can give itself DELETE.
const replaces = zk.PermDelete | zk.PermAdmin

// hasPermanentChild reports whether a znode has a child that servers never delete, or may have
// one, because the list cannot be read or has too many children. Such a child has data: servers do
// not tell persistent znodes from containers, which they delete. The containers of locks are empty,
// except for a semaphore's leases. reads counts the children that were read.
func hasPermanentChild(ctx context.Context, z *zk.Client, p Parent, reads *int) (bool, error) {
	if p.Stat.NumChildren == 0 {
		return false, nil
	}
	children, _, err := z.Children(ctx, p.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return false, nil
	case errors.Is(err, zk.ErrNoAuth), isTooLarge(err):
		return true, nil
	case err != nil:
		return false, err
	}
	if *reads += len(children); *reads > maxParents {
		return true, nil
	}
	ops := make([]zk.Op, len(children))
	for i, child := range children {
		ops[i] = zk.ExistsOp(path.Join(p.Path, child), false)
	}
	results, err := z.DoAll(ctx, ops...)
	for i, r := range results {
		hidden := errors.Is(r.Err, zk.ErrNoAuth)
		data := r.Err == nil && r.Stat.EphemeralOwner == 0 && r.Stat.DataLength > 0
		if hidden || data && children[i] != "leases" {
			return true, nil
		}
	}
	return false, err
}
