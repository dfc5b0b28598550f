package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// Bounds of a walk over the servers' tree.
const (
	maxDepth = 17    // below it no lock's name can be
	maxReads = 20000 // znodes read
	walkers  = 16    // that read at a time
)

// heldSuffix ends the paths of the parents of lock delays' records.
const heldSuffix = "-held"

// walk looks for locks below a path, level by level.
type walk struct {
	z      *zk.Client
	c      *zklock.Client
	layout layoutValue
	limit  time.Duration // for the look at one znode: the servers may go away
	left   atomic.Int64  // reads that may still be made

	mu     sync.Mutex // guards what follows; not held while reading
	found  []survey
	next   []string // paths of the next level
	hidden []string // paths at which something may not be read
	err    error
}

func newWalk(z *zk.Client, c *zklock.Client, layout layoutValue, limit time.Duration) *walk {
	w := &walk{z: z, c: c, layout: layout, limit: limit}
	w.left.Store(maxReads)
	return w
}

// errTooMany ends a walk that would take too long.
var errTooMany = fmt.Errorf("more than %d znodes to read, and only what was found so far is listed; give zklock ls a prefix", maxReads)

// errHidden is why a walk that came to its end is not complete.
var errHidden = errors.New("the servers do not let everything be read")

// run finds the locks at and below path, in the order of their paths. With an
// error it has found some. What may not be read is passed over: servers that many
// share have such places, and the locks beside them are there all the same.
func (w *walk) run(ctx context.Context, path string) error {
	w.next = []string{path}
	for depth := 0; depth <= maxDepth && len(w.next) > 0 && w.err == nil; depth++ {
		level := w.next
		w.next = nil
		w.level(ctx, level)
	}
	slices.SortFunc(w.found, func(a, b survey) int { return strings.Compare(a.path, b.path) })
	if n := len(w.hidden); w.err == nil && n > 0 {
		return fmt.Errorf("%w, at %s, of which the first is %s; what is there is not listed", errHidden, count(n, "path"), legible(slices.Min(w.hidden)))
	}
	return w.err
}

// level visits paths, several at a time. Its goroutines have ended when it
// returns.
func (w *walk) level(ctx context.Context, paths []string) {
	var all sync.WaitGroup
	free := make(chan struct{}, walkers)
	for _, path := range paths {
		free <- struct{}{}
		if w.failed() {
			break
		}
		all.Go(func() {
			defer func() { <-free }()
			found, below, err := w.visit(ctx, path)
			w.note(path, found, below, err)
		})
	}
	all.Wait()
}

// failed reports whether the walk is to end.
func (w *walk) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// note keeps what a visit found.
func (w *walk) note(path string, found []survey, below []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(err, zk.ErrNoAuth) {
		w.hidden, err = append(w.hidden, path), nil
	}
	w.found = append(w.found, found...)
	w.next = append(w.next, below...)
	if w.err == nil {
		w.err = err
	}
}

// visit looks at one znode: whether it is a lock, and what is to visit below.
func (w *walk) visit(ctx context.Context, path string) (found []survey, below []string, err error) {
	if path == "/zookeeper" {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	if !w.spend(1) {
		return nil, nil, errTooMany
	}
	children, stat, err := w.z.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil // gone since it was listed, or never there
	}
	if err != nil {
		return nil, nil, err
	}
	mine := map[string]bool{} // children that belong to the locks here
	for _, lock := range w.candidates(path, children, stat.EphemeralOwner != 0) {
		if !w.spend(3 + len(children)) {
			return found, nil, errTooMany
		}
		s, err := look(ctx, w.z, w.c, lock)
		if errors.Is(err, zklock.ErrInvalidName) {
			continue
		}
		if err != nil {
			return found, nil, err
		}
		w.left.Add(-int64(max(0, len(s.entries)-len(children)))) // a semaphore's are a level below
		if len(s.contenders()) == 0 {
			continue
		}
		found = append(found, s)
		s.claims(mine)
	}
	for _, child := range children {
		if !mine[child] && !isRecord(path, child) {
			below = append(below, strings.TrimSuffix(path, "/")+"/"+child)
		}
	}
	return found, below, nil
}

// spend takes n reads off those that are left, and reports whether there were
// so many.
func (w *walk) spend(n int) bool { return w.left.Add(-int64(n)) >= 0 }

// candidates are the paths of locks that may be at path. To look closely at all
// that is there would read every znode of the servers.
func (w *walk) candidates(path string, children []string, ephemeral bool) []string {
	if path == "/" || path == namesRoot && !w.layout.InParent {
		return nil // there, "locks" and "leases" are names like others
	}
	if w.layout.InParent {
		return w.inParent(path, children)
	}
	is := looksLikeEntry
	if w.layout.custom() {
		is = func(name string) bool { _, ok := w.entryOf(name); return ok }
	}
	if ephemeral || slices.Contains(children, "leases") || slices.ContainsFunc(children, is) {
		return []string{path}
	}
	return nil
}

// inParent are the locks in a parent of several.
func (w *walk) inParent(path string, children []string) []string {
	var locks []string
	for _, child := range children {
		before, ok := w.entryOf(child)
		if name, ours := strings.CutPrefix(before, w.layout.Prefix); ok && ours && name != "" {
			locks = append(locks, path+"/"+name)
		}
	}
	slices.Sort(locks)
	return slices.Compact(locks)
}

// entryOf returns what stands before the marker in an entry's name of a layout of
// the user's own.
func (w *walk) entryOf(name string) (before string, ok bool) {
	cut := len(name) - sequenceDigits
	if cut < 0 || strings.Trim(name[cut:], "0123456789") != "" {
		return "", false
	}
	for _, marker := range []string{w.layout.Exclusive, w.layout.Shared} {
		if before, ok := strings.CutSuffix(name[:cut], marker); ok && marker != "" {
			return before, true
		}
	}
	return "", false
}

// looksLikeEntry reports whether a child may stand in a queue. No lock can have
// such a name.
func looksLikeEntry(name string) bool {
	_, err := zklock.PathOf(name)
	return err != nil
}

// isRecord reports whether a child is a lock delay's record.
func isRecord(parent, child string) bool {
	return strings.HasSuffix(parent, heldSuffix) && looksLikeEntry(child+"0000000000")
}

// claims marks the children that belong to the lock.
func (s *survey) claims(children map[string]bool) {
	for _, e := range s.contenders() {
		children[e.Name] = true
	}
	if s.shape == shapeSemaphore {
		children["locks"], children["leases"] = true, true
	}
}
