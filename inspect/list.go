package inspect

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// Limits of a listing.
const (
	maxDepth            = 17               // no lock name has more levels
	maxWidth            = 100_000          // children that are listed; more would be a response of megabytes
	defaultMaxReads     = 20_000           // reads of znodes that are not locks
	defaultMaxLockReads = 200_000          // reads of locks
	listWorkers         = 16               // concurrent reads
	defaultTimeout      = 10 * time.Second // for each znode
	// maxSlow limits the paths that take longer than ListOptions.Timeout: if there are more, the
	// listing stops, because the servers are slow or have stopped answering.
	maxSlow = 4 * listWorkers
	// maxPendingBytes limits the paths that wait for a visit, and maxFoundBytes the locks
	// that were found, because a server may invent any number of znodes. maxReadingBytes limits
	// the locks that are being read.
	maxPendingBytes = 16 << 20
	maxFoundBytes   = 64 << 20
	maxReadingBytes = 2 * maxFoundBytes
	// maxUndeclared is how many ephemeral children otherLayout reads to find one that declares a
	// layout.
	maxUndeclared = 64
)

// ListOptions limit a listing. Zero values mean the defaults.
type ListOptions struct {
	// MaxReads limits the reads of znodes that are not locks; 0 means 20000.
	MaxReads int
	// MaxLockReads limits the reads of locks; 0 means 200000. A lock with two entries takes
	// five reads, and a semaphore four more.
	MaxLockReads int
	// Timeout limits the time for each znode, because servers may stop answering; 0 means
	// 10 s. A listing omits a lock that takes longer to read. It stops after more than 64 such
	// znodes.
	Timeout time.Duration
	// OnLock, if not nil, is called for each lock as soon as it was read, from several
	// goroutines, in any order.
	OnLock func(*Lock)
}

func (l ListOptions) withDefaults() ListOptions {
	if l.MaxReads <= 0 {
		l.MaxReads = defaultMaxReads
	}
	if l.MaxLockReads <= 0 {
		l.MaxLockReads = defaultMaxLockReads
	}
	if l.Timeout <= 0 {
		l.Timeout = defaultTimeout
	}
	if l.OnLock == nil {
		l.OnLock = func(*Lock) {}
	}
	return l
}

// List returns the locks at and below a path that have a holder or a waiter. An error that
// wraps [ErrTooMany], [ErrUnreadable], or [ErrInvalidNames] comes with the locks that were
// found. List skips paths that it may not read, because a shared ensemble has such paths. If the
// path of a lock ends in /locks, and a znode named leases is next to it, the entries of the lock are
// the waiters of a semaphore in the list.
//
// List visits small places first: the weight of a znode is that of its parent divided by
// the number of siblings. So a million znodes in one place use only the reads that the
// other places leave.
func (r *Reader) List(ctx context.Context, path string, limits ListOptions) (ListResult, error) {
	return r.list(ctx, path, listOptions{ListOptions: limits})
}

// listOptions are ListOptions and what a watcher needs in addition.
type listOptions struct {
	ListOptions
	known     func(path string) []zklock.Entry // the entries of a lock that need not be read again; may be nil
	semaphore func(path string)                // called for each path that may be a semaphore; may be nil
	slow      func(path string) bool           // reports whether to omit a path as slow; may be nil
}

// list is List with listOptions.
func (r *Reader) list(ctx context.Context, path string, opts listOptions) (ListResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &lister{Reader: r, root: path, limits: opts.ListOptions.withDefaults(), opts: opts, pending: listHeap{{path: path, weight: 1}}}
	w.changed = sync.NewCond(&w.mu)
	var all sync.WaitGroup // ended when list returns
	for range listWorkers {
		all.Go(func() { w.work(ctx) })
	}
	all.Wait()
	slices.SortFunc(w.found, func(a, b *Lock) int { return strings.Compare(a.Path, b.Path) })
	stopped := w.err == errManySlow
	if stopped {
		w.err, w.dropped = nil, w.dropped+len(w.pending)
	}
	partial := stopped || w.err != nil || w.dropped > 0 || len(w.invalid) > 0
	return ListResult{w.found, w.reads, w.omitted(), partial, stopped}, w.outcome()
}

// lister is a listing in progress.
type lister struct {
	*Reader
	root   string // where the listing starts
	limits ListOptions
	opts   listOptions

	mu          sync.Mutex // guards what follows; not held while reading
	changed     *sync.Cond // pending, visiting, or err
	pending     listHeap
	bytes       int         // of the paths in pending
	dropped     int         // znodes that were not visited, because there were too many
	visiting    []*listNode // the znodes being visited, which may add to pending
	searchReads int         // counts toward limits.MaxReads
	lockReads   int         // counts toward limits.MaxLockReads
	reads       int64       // estimate of all reads
	found       []*Lock
	size        int      // estimated bytes of found
	reading     int      // estimated bytes of the locks that are being read
	invalid     []string // paths that no znode can have
	unreadable  []string // paths that need a permission
	tooWide     []string // paths with too many children
	unclear     []string // paths that may be locks in a custom layout
	slow        []string // paths that took longer than limits.Timeout, now or in an earlier listing
	waited      int      // paths that took longer in this listing
	answered    bool     // a server has answered
	err         error
}

// work visits znodes until none is left.
func (w *lister) work(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for w.err == nil && w.mustWait() {
			w.changed.Wait()
		}
		if len(w.pending) == 0 || w.err != nil {
			return
		}
		at := heap.Pop(&w.pending).(listNode)
		w.bytes -= len(at.path)
		w.visiting = append(w.visiting, &at)
		w.mu.Unlock()
		err := w.visit(ctx, &at)
		w.mu.Lock()
		i := slices.Index(w.visiting, &at)
		w.visiting = slices.Delete(w.visiting, i, i+1)
		switch {
		case errors.Is(err, errSlow):
			w.slow = append(w.slow, at.path)
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && w.answered:
			// One lock is too large, or makes others wait for its data.
			w.slow = append(w.slow, at.path)
			if w.waited++; w.waited > maxSlow && w.err == nil {
				w.err = errManySlow
			}
		case errors.Is(err, zk.ErrNoAuth):
			w.unreadable = append(w.unreadable, at.path)
		case errors.Is(err, errUnclear):
			w.unclear = append(w.unclear, at.path)
		case errors.Is(err, zk.ErrInvalidPath) && at.depth > 0:
			w.invalid = append(w.invalid, at.path)
		case errors.Is(err, errWide), isTooLarge(err):
			w.tooWide = append(w.tooWide, at.path)
		case err != nil && w.err == nil:
			w.err = err
		}
		w.changed.Broadcast()
	}
}

// hear notes an answer.
func (w *lister) hear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = true
}

// weightRatio is how much heavier a znode being visited must be than the next one, so that
// the next one waits.
const weightRatio = 8

// mustWait reports whether a worker has to wait, because pending is empty but may grow, or
// because another worker is at a much heavier znode, whose children come first. Otherwise,
// many light znodes would use up the reads while one read takes long.
func (w *lister) mustWait() bool {
	if len(w.pending) == 0 {
		return len(w.visiting) > 0
	}
	next := w.pending[0].weight
	return slices.ContainsFunc(w.visiting, func(at *listNode) bool {
		return at.weight > weightRatio*next
	})
}

// spend takes n reads from one of the limits, and reports whether so many were left.
func (w *lister) spend(n int, spent *int, most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *spent+n > most {
		return false
	}
	*spent += n
	w.reads += int64(n)
	return true
}

// visit reads one znode: whether it is a lock, and what to visit below it.
func (w *lister) visit(ctx context.Context, at *listNode) error {
	if at.path == "/zookeeper" || at.depth > maxDepth {
		return nil
	}
	if w.opts.slow != nil && w.opts.slow(at.path) {
		return errSlow
	}
	ctx, cancel := context.WithTimeout(ctx, w.limits.Timeout)
	defer cancel()
	kept := 0 // bytes of the locks that this visit reads
	ctx = (&queue.Reading{MaxEntries: w.maxChildren, Keep: func(bytes int) error {
		kept += bytes
		return w.keep(bytes)
	}}).Context(ctx)
	defer func() { _ = w.keep(-kept) }()
	if !w.spend(1, &w.searchReads, w.limits.MaxReads) {
		return w.tooMany()
	}
	// Read its Stat first. Most znodes have no children, and a list of millions is
	// expensive for the server.
	stat, there, err := w.z.Exists(ctx, at.path)
	if err != nil {
		return err
	}
	w.hear()
	switch {
	case !there:
		return nil // deleted after it was listed, or never there
	case stat.EphemeralOwner != 0 && w.layout.InParent:
		return nil // more likely an entry with another prefix than a lock
	case stat.EphemeralOwner != 0:
		l, err := w.readLock(ctx, w.plain, at.path, 0)
		if l != nil {
			w.chargeLock(1)
		}
		return err
	case stat.NumChildren == 0:
		return nil
	case int(stat.NumChildren) > w.maxChildren:
		return errWide
	}
	if !w.spend(1, &w.searchReads, w.limits.MaxReads) {
		return w.tooMany()
	}
	children, _, err := w.z.Children(ctx, at.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(children) > maxWidth { // the server may lie in the Stat
		return errWide
	}
	w.lighten(at, len(children))
	if w.opts.semaphore != nil && slices.Contains(children, "leases") {
		w.opts.semaphore(at.path)
	}
	mine, more, err := w.locksIn(ctx, at.path, children)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) && !errors.Is(err, errUnclear) {
		return err
	}
	if len(mine) > 0 {
		w.chargeLock(2)
	}
	w.push(at, children, mine, more)
	return err
}

// keep counts bytes of locks that are being read, or that were read if bytes is negative.
func (w *lister) keep(bytes int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reading += bytes; bytes > 0 && w.reading > maxReadingBytes {
		return ErrTooManyChildren
	}
	return nil
}

// lighten gives a znode being visited the weight of each of its n children. So znodes that are as
// heavy as these do not wait while a lock is read.
func (w *lister) lighten(at *listNode, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at.weight /= float64(max(n, 1))
	w.changed.Broadcast()
}

// chargeLock moves reads from the search limit to the lock limit, because they found a
// lock.
func (w *lister) chargeLock(reads int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.searchReads -= reads
	w.lockReads += reads
}

func (w *lister) tooMany() error {
	return fmt.Errorf("%w: more than %d reads", ErrTooMany, w.limits.MaxReads)
}

func (w *lister) tooManyOfLocks() error {
	return fmt.Errorf("%w: more than %d reads of locks", ErrTooMany, w.limits.MaxLockReads)
}

// locksIn reads the locks at path. It returns the children that belong to them, and the znodes to
// visit nevertheless: what in the parents of a semaphore is no part of it, and if only data declare
// the layout, entries that may be locks, because they are not ephemeral or may not be read.
func (w *lister) locksIn(ctx context.Context, path string,
	children []string) (mine map[string]bool, more []string, err error) {
	mine = map[string]bool{}
	candidates := w.candidates(path, children)
	if len(candidates) == 0 {
		other, err := w.otherLayout(ctx, path, children)
		if err != nil {
			return mine, nil, err
		}
		if other {
			candidates = []candidate{{path, w.own}}
		}
	}
	for _, c := range candidates {
		below, others := 0, []string(nil)
		// The waiters of kazoo's Semaphore are in its own queue.
		if strings.HasSuffix(c.path, kazooGate) && c.path != w.root {
			if !w.spend(2, &w.lockReads, w.limits.MaxLockReads) {
				return mine, more, w.tooManyOfLocks()
			}
			switch gate, err := w.isKazooGate(ctx, c.path); {
			case err != nil:
				return mine, more, err
			case gate:
				for _, child := range children {
					mine[child] = isContender(child)
				}
				continue
			}
		}
		if slices.Contains(children, "leases") && !w.layout.InParent {
			n, used, found, err := w.permitsBelow(ctx, path)
			switch {
			case errors.Is(err, errWide):
				continue // the visit of that child reports it
			case err != nil:
				return mine, more, err
			case !used && !slices.ContainsFunc(children, w.isEntry):
				continue
			}
			below, others = n, found
		}
		l, err := w.readLock(ctx, c.client, c.path, len(children)+below)
		if err != nil {
			return mine, more, err
		}
		if l == nil {
			continue
		}
		for _, e := range l.Contenders() {
			mine[e.Name] = true
			if l.Layout != (zklock.Layout{}) && e.Session == 0 {
				more = append(more, e.Node)
			}
		}
		if l.Kind == KindSemaphore {
			mine["locks"], mine["leases"] = true, true
			more = append(more, others...)
		}
	}
	return mine, more, nil
}

// otherLayout reports whether the data of a child declare a custom layout. If it did not read all
// children that may, and none of the others does, it returns an error that wraps errUnclear or
// [zk.ErrNoAuth]: clients that may create znodes here cannot hide a lock.
func (w *lister) otherLayout(ctx context.Context, path string, children []string) (bool, error) {
	if !mayBeLock(path) || w.layout.InParent {
		return false, nil
	}
	var unread error
	reads := 0
	for _, child := range w.mayDeclare(children) {
		if !w.spend(1, &w.searchReads, w.limits.MaxReads) {
			return false, w.tooMany()
		}
		node := path + "/" + child
		stat, there, err := w.z.Exists(ctx, node)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			unread = err
			continue
		case err != nil:
			return false, err
		case !there || stat.EphemeralOwner == 0: // no entry
			continue
		}
		if reads++; reads > maxUndeclared {
			return false, errUnclear
		}
		if !w.spend(2, &w.searchReads, w.limits.MaxReads) {
			return false, w.tooMany()
		}
		found, err := w.plain.Inspect(ctx, node)
		switch {
		case errors.Is(err, zklock.ErrInvalidName):
			continue
		case errors.Is(err, zk.ErrNoAuth):
			unread = err
			continue
		case err != nil:
			return false, err
		case len(found) != 1:
			continue
		case isApart(found[0]):
			return true, nil
		case found[0].Czxid == 0:
			unread = &zk.Error{Op: "get", Path: node, Err: zk.ErrNoAuth}
		}
	}
	return false, unread
}

// permitsBelow counts the znodes of the semaphore at a path, and reports whether one of them
// is an entry: other programs may have large directories called leases. It also returns the paths
// there that may be locks of their own.
func (w *lister) permitsBelow(ctx context.Context, at string) (n int, used bool,
	others []string, err error) {
	for _, part := range []string{queue.LeasesPath(at), queue.GatePath(at)} {
		if !w.spend(2, &w.lockReads, w.limits.MaxLockReads) {
			return 0, false, nil, w.tooManyOfLocks()
		}
		stat, there, err := w.z.Exists(ctx, part)
		switch {
		case err != nil:
			return 0, false, nil, err
		case !there || stat.NumChildren == 0:
			continue
		case stat.NumChildren > maxWidth:
			return 0, false, nil, errWide
		}
		children, _, err := w.z.Children(ctx, part)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return 0, false, nil, err
		}
		n += len(children)
		used = used || slices.ContainsFunc(children, isContender)
		children = slices.DeleteFunc(children, func(child string) bool { return isPart(part, child) })
		if slices.ContainsFunc(children, w.contends) {
			children, part = []string{path.Base(part)}, path.Dir(part)
		}
		for _, child := range children {
			others = append(others, part+"/"+child)
		}
	}
	return n, used, others, nil
}

// isPart reports whether a child of one of the parents of a semaphore belongs to the semaphore.
func isPart(parent, child string) bool {
	e, class := queue.ParseName(child)
	return class == queue.Contender && (e.Lease() || path.Base(parent) != "leases")
}

// readLock reads a lock with about n entries and keeps it. It returns nil if the path has
// no lock.
func (w *lister) readLock(ctx context.Context, c *zklock.Client, path string, n int) (*Lock, error) {
	if !w.spend(2+n, &w.lockReads, w.limits.MaxLockReads) {
		return nil, w.tooManyOfLocks()
	}
	var before []zklock.Entry
	if w.opts.known != nil {
		before = w.opts.known(path)
	}
	l, err := w.readWith(ctx, c, path, before)
	switch {
	case errors.Is(err, zklock.ErrInvalidName):
		return nil, nil
	case err != nil:
		return nil, err
	case len(l.Contenders()) == 0:
		return nil, nil
	}
	w.limits.OnLock(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lockReads += max(0, len(l.Entries)-n) // a semaphore's entries are one level below
	w.reads += int64(max(0, len(l.Entries)-n))
	if w.size += l.bytes(); w.size > maxFoundBytes {
		return l, fmt.Errorf("%w: the locks take more than %d MiB", ErrTooMany, maxFoundBytes>>20)
	}
	w.found = append(w.found, l)
	return l, nil
}

// push adds the children that belong to no lock to pending, and more paths below at.
func (w *lister) push(at *listNode, children []string, mine map[string]bool, more []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	add := func(n listNode) {
		if tooLong(n.path) {
			return
		}
		w.bytes += len(n.path)
		heap.Push(&w.pending, n)
		if w.bytes > 2*maxPendingBytes || len(w.pending) > 2*w.limits.MaxReads {
			w.prune()
		}
	}
	for _, child := range children {
		if !mine[child] && !isRecord(at.path, child) {
			path := strings.TrimSuffix(at.path, "/") + "/" + child
			add(listNode{path: path, depth: at.depth + 1, weight: at.weight})
		}
	}
	for _, path := range more {
		depth := at.depth + strings.Count(path, "/") - strings.Count(at.path, "/")
		add(listNode{path: path, depth: depth, weight: at.weight / float64(len(more))})
	}
}

// prune drops the lightest znodes if pending has more than the limits allow to visit. The
// caller holds the mutex.
func (w *lister) prune() {
	slices.SortFunc(w.pending, func(a, b listNode) int { return cmp.Compare(b.weight, a.weight) }) // also a heap
	kept := 0
	w.bytes = 0
	for kept < min(len(w.pending), w.limits.MaxReads) && w.bytes+len(w.pending[kept].path) <= maxPendingBytes {
		w.bytes += len(w.pending[kept].path)
		kept++
	}
	w.dropped += len(w.pending) - kept
	clear(w.pending[kept:])
	w.pending = w.pending[:kept]
}

// listNode is a znode to visit.
type listNode struct {
	path   string
	depth  int
	weight float64 // the parent's weight divided by the number of siblings; see also lighten
}

// listHeap is a heap of znodes, heaviest first.
type listHeap []listNode

func (p listHeap) Len() int           { return len(p) }
func (p listHeap) Less(i, j int) bool { return p[i].weight > p[j].weight }
func (p listHeap) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *listHeap) Push(x any)        { *p = append(*p, x.(listNode)) }
func (p *listHeap) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}
