package survey

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// Bounds of a walk over the servers' tree.
const (
	maxDepth  = 17      // below it no lock's name can be
	maxWidth  = 100_000 // children that are listed: more are an answer of megabytes
	walkReads = 20_000  // of znodes that are no locks
	lockReads = 200_000 // of the locks themselves
	walkers   = 16      // that read at a time
	// todoBytes bounds the paths that are to be visited, and foundBytes the locks
	// that were found: servers may lie about what they have.
	todoBytes  = 16 << 20
	foundBytes = 64 << 20
)

// Limits are the bounds of a walk; zero values stand for the defaults.
type Limits struct {
	// Reads bounds the reads that look for locks and find none; 0 means 20000.
	Reads int
	// LockReads bounds the reads of the locks that were found; 0 means 200000. A lock
	// of two entries takes five, a semaphore four more.
	LockReads int
	// Each bounds the time for looking at one znode, as servers may go away; 0
	// means 10 s.
	Each time.Duration
	// Found, unless it is nil, is told of each lock as soon as it is read, from
	// several goroutines, in no order.
	Found func(*Lock)
}

func (l Limits) filled() Limits {
	if l.Reads <= 0 {
		l.Reads = walkReads
	}
	if l.LockReads <= 0 {
		l.LockReads = lockReads
	}
	if l.Each <= 0 {
		l.Each = 10 * time.Second
	}
	if l.Found == nil {
		l.Found = func(*Lock) {}
	}
	return l
}

// Errors of walks, that come with what was found.
var (
	// ErrTooMany ends a walk that would read too much.
	ErrTooMany = errors.New("too many znodes to read, and only what was found so far is listed; give a prefix to go deeper")
	// ErrHidden is why a walk that came to its end is not complete.
	ErrHidden = errors.New("the servers do not let everything be read")

	// ErrInvalid is why a walk that came to its end left out what it was told of.
	ErrInvalid = errors.New("the servers list names that no znode can have")

	errWide = errors.New("more children than are listed")
)

// A Walked is what a walk found.
type Walked struct {
	Locks []*Lock // in the order of their paths
	Reads int64   // made
}

// Walk finds the locks at and below a path that somebody holds or waits for. With an
// error that wraps [ErrTooMany], [ErrHidden] or [ErrInvalid] it has found some; what may
// not be read is passed over, as servers that many share have such places, and the locks
// beside them are there all the same.
//
// It goes first to places with few others beside: a child counts the less, the more
// siblings it and its parents have. So a million znodes in one place use up what is
// left of the reads after the other places, and not before.
func (r *Reader) Walk(ctx context.Context, path string, limits Limits) (Walked, error) {
	return r.walk(ctx, path, walkOptions{Limits: limits})
}

// walkOptions are what a survey wants besides of a walk.
type walkOptions struct {
	Limits
	known     func(path string) []zklock.Entry // of a lock, that need not be read again; may be nil
	semaphore func(path string)                // is told of what may be one; may be nil
}

// walk is Walk with options.
func (r *Reader) walk(ctx context.Context, path string, opts walkOptions) (Walked, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &walk{Reader: r, limits: opts.Limits.filled(), opts: opts, todo: spots{{path: path, weight: 1}}}
	w.changed = sync.NewCond(&w.mu)
	var all sync.WaitGroup // ended when walk returns
	for range walkers {
		all.Go(func() { w.work(ctx) })
	}
	all.Wait()
	slices.SortFunc(w.found, func(a, b *Lock) int { return strings.Compare(a.Path, b.Path) })
	return Walked{Locks: w.found, Reads: w.reads}, w.outcome()
}

// outcome is the error of a walk that has ended.
func (w *walk) outcome() error {
	if w.err != nil {
		return w.err
	}
	if len(w.wide) > 0 {
		return fmt.Errorf("%w: below %s there are more than %d", ErrTooMany, legible.Path(slices.Min(w.wide)), maxWidth)
	}
	if w.dropped > 0 {
		return fmt.Errorf("%w: %s that were listed were not looked at", ErrTooMany, count(w.dropped, "znode"))
	}
	if n := len(w.invalid); n > 0 {
		return fmt.Errorf("%w, %s, of which the first is %s; they are left out", ErrInvalid, count(n, "time"), legible.Path(slices.Min(w.invalid)))
	}
	if n := len(w.hidden); n > 0 {
		return fmt.Errorf("%w, at %s, of which the first is %s; what is there is not listed", ErrHidden, count(n, "path"), legible.Path(slices.Min(w.hidden)))
	}
	return nil
}

// walk is one under way.
type walk struct {
	*Reader
	limits Limits
	opts   walkOptions

	mu      sync.Mutex // guards what follows; not held while reading
	changed *sync.Cond // todo, doing or err
	todo    spots
	bytes   int       // of the paths in todo
	dropped int       // spots that were not visited, since there were too many
	doing   []float64 // the weights of the spots that walkers are at, who may yet add to todo
	looked  int       // reads of limits.Reads
	locked  int       // of limits.LockReads
	reads   int64     // made, as near as can be told
	found   []*Lock
	size    int      // of found, about
	invalid []string // paths that no znode can have
	hidden  []string // paths at which something may not be read
	wide    []string // paths below which there is too much to list
	err     error
}

// work visits places until there are none left.
func (w *walk) work(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for w.err == nil && w.mustWait() {
			w.changed.Wait()
		}
		if len(w.todo) == 0 || w.err != nil {
			return
		}
		at := heap.Pop(&w.todo).(spot)
		w.bytes -= len(at.path)
		w.doing = append(w.doing, at.weight)
		w.mu.Unlock()
		err := w.visit(ctx, at)
		w.mu.Lock()
		i := slices.Index(w.doing, at.weight)
		w.doing = slices.Delete(w.doing, i, i+1)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			w.hidden = append(w.hidden, at.path)
		case errors.Is(err, zk.ErrInvalidPath) && at.depth > 0:
			w.invalid = append(w.invalid, at.path)
		case errors.Is(err, errWide):
			w.wide = append(w.wide, at.path)
		case err != nil && w.err == nil:
			w.err = err
		}
		w.changed.Broadcast()
	}
}

// headStart is how much less than another a spot counts that waits for it.
const headStart = 8

// mustWait reports whether nothing is to be visited yet: more may come, or somebody
// is at a place that counts for so much more that what is below it goes first. Else
// many that count for little would use up the reads while one read takes long.
func (w *walk) mustWait() bool {
	if len(w.todo) == 0 {
		return len(w.doing) > 0
	}
	next := w.todo[0].weight
	return slices.ContainsFunc(w.doing, func(weight float64) bool { return weight > headStart*next })
}

// spend takes n reads off those that are left of one of the bounds, and reports
// whether there were so many.
func (w *walk) spend(n int, spent *int, most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *spent+n > most {
		return false
	}
	*spent += n
	w.reads += int64(n)
	return true
}

// visit looks at one znode: whether it is a lock, and what is to visit below.
func (w *walk) visit(ctx context.Context, at spot) error {
	if at.path == "/zookeeper" || at.depth > maxDepth {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.limits.Each)
	defer cancel()
	if !w.spend(1, &w.looked, w.limits.Reads) {
		return w.tooMany()
	}
	// Its Stat first: most znodes have no children, and a listing of millions would
	// be a burden to the server.
	stat, there, err := w.z.Exists(ctx, at.path)
	switch {
	case err != nil || !there:
		return err // gone since it was listed, or never there
	case stat.EphemeralOwner != 0 && w.layout.InParent:
		return nil // an entry of a lock with another prefix, more likely than a lock
	case stat.EphemeralOwner != 0:
		l, err := w.lock(ctx, w.plain, at.path, 0)
		if l != nil {
			w.charge(1)
		}
		return err
	case stat.NumChildren == 0:
		return nil
	case stat.NumChildren > maxWidth:
		return errWide
	}
	if !w.spend(1, &w.looked, w.limits.Reads) {
		return w.tooMany()
	}
	children, _, err := w.z.Children(ctx, at.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(children) > maxWidth { // whatever its Stat said
		return errWide
	}
	if w.opts.semaphore != nil && slices.Contains(children, "leases") {
		w.opts.semaphore(at.path)
	}
	mine, err := w.locksIn(ctx, at.path, children)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	if len(mine) > 0 {
		w.charge(2)
	}
	w.below(at, children, mine)
	return err
}

// charge moves reads that found a lock from what may be spent on looking to what may
// be spent on locks.
func (w *walk) charge(reads int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked -= reads
	w.locked += reads
}

func (w *walk) tooMany() error {
	return fmt.Errorf("%w: more than %d", ErrTooMany, w.limits.Reads)
}

func (w *walk) tooManyOfLocks() error {
	return fmt.Errorf("%w: more than %d of locks", ErrTooMany, w.limits.LockReads)
}

// locksIn reads the locks at path, and returns the children that are theirs.
func (w *walk) locksIn(ctx context.Context, path string, children []string) (map[string]bool, error) {
	mine := map[string]bool{}
	candidates := w.candidates(path, children)
	if len(candidates) == 0 {
		other, err := w.otherLayout(ctx, path, children)
		if err != nil {
			return mine, err
		}
		if other {
			candidates = []candidate{{path, w.own}}
		}
	}
	for _, c := range candidates {
		below := 0
		if slices.Contains(children, "leases") && !w.layout.InParent {
			n, used, err := w.permitsBelow(ctx, path)
			switch {
			case errors.Is(err, errWide):
				continue // which the visit to what is wide tells
			case err != nil:
				return mine, err
			case !used && !slices.ContainsFunc(children, w.isEntry):
				continue
			}
			below = n
		}
		l, err := w.lock(ctx, c.client, c.path, len(children)+below)
		if err != nil {
			return mine, err
		}
		if l == nil {
			continue
		}
		for _, e := range l.Contenders() {
			mine[e.Name] = true
		}
		if l.Kind == Semaphore {
			mine["locks"], mine["leases"] = true, true
		}
	}
	return mine, nil
}

// otherLayout reports whether one of the children says that it is an entry in a layout of
// its owner's own. It reads one of them.
func (w *walk) otherLayout(ctx context.Context, path string, children []string) (bool, error) {
	child, ok := w.sequential(children)
	if !ok || path == "/" || w.layout.InParent {
		return false, nil
	}
	if !w.spend(2, &w.looked, w.limits.Reads) {
		return false, w.tooMany()
	}
	found, err := w.plain.Inspect(ctx, path+"/"+child)
	if errors.Is(err, zklock.ErrInvalidName) || errors.Is(err, zk.ErrNoAuth) {
		return false, nil
	}
	return len(found) == 1 && claimed(found[0]) && !found[0].Owner.Layout.InParent, err
}

// permitsBelow counts the znodes that a look at the semaphore at path reads, and reports
// whether any of them holds or waits: other programs have something called leases as
// well, and much in it.
func (w *walk) permitsBelow(ctx context.Context, path string) (n int, used bool, err error) {
	for _, part := range []string{path + "/leases", path + "/locks"} {
		if !w.spend(2, &w.locked, w.limits.LockReads) {
			return 0, false, w.tooManyOfLocks()
		}
		stat, there, err := w.z.Exists(ctx, part)
		switch {
		case err != nil:
			return 0, false, err
		case !there || stat.NumChildren == 0:
			continue
		case stat.NumChildren > maxWidth:
			return 0, false, errWide
		}
		children, _, err := w.z.Children(ctx, part)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return 0, false, err
		}
		n += len(children)
		used = used || slices.ContainsFunc(children, isContender)
	}
	return n, used, nil
}

// lock reads one lock, of about n entries, and keeps it if there is one: else nil.
func (w *walk) lock(ctx context.Context, c *zklock.Client, path string, n int) (*Lock, error) {
	if !w.spend(2+n, &w.locked, w.limits.LockReads) {
		return nil, w.tooManyOfLocks()
	}
	var before []zklock.Entry
	if w.opts.known != nil {
		before = w.opts.known(path)
	}
	l, err := w.look(ctx, c, path, before)
	switch {
	case errors.Is(err, zklock.ErrInvalidName):
		return nil, nil
	case err != nil:
		return nil, err
	case len(l.Contenders()) == 0:
		return nil, nil
	}
	w.limits.Found(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locked += max(0, len(l.Entries)-n) // a semaphore's are a level below
	w.reads += int64(max(0, len(l.Entries)-n))
	if w.size += l.bytes(); w.size > foundBytes {
		return l, fmt.Errorf("%w: they take more than %d MiB", ErrTooMany, foundBytes>>20)
	}
	w.found = append(w.found, l)
	return l, nil
}

// below adds the children that are no lock's to what is to visit.
func (w *walk) below(at spot, children []string, mine map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	weight := at.weight / float64(len(children))
	for _, child := range children {
		if !mine[child] && !isRecord(at.path, child) {
			path := strings.TrimSuffix(at.path, "/") + "/" + child
			w.bytes += len(path)
			heap.Push(&w.todo, spot{path: path, depth: at.depth + 1, weight: weight})
			if w.bytes > 2*todoBytes || len(w.todo) > 2*w.limits.Reads {
				w.prune()
			}
		}
	}
}

// prune drops spots that count for least, of which there are more than will ever be
// visited. The mutex is held.
func (w *walk) prune() {
	slices.SortFunc(w.todo, func(a, b spot) int { return cmp.Compare(b.weight, a.weight) }) // a heap as well
	kept := 0
	w.bytes = 0
	for kept < min(len(w.todo), w.limits.Reads) && w.bytes+len(w.todo[kept].path) <= todoBytes {
		w.bytes += len(w.todo[kept].path)
		kept++
	}
	w.dropped += len(w.todo) - kept
	clear(w.todo[kept:])
	w.todo = w.todo[:kept]
}

// spot is a znode that is to be visited.
type spot struct {
	path   string
	depth  int
	weight float64 // what it counts: its parent's, shared with its siblings
}

// spots is a heap of them, the heaviest first.
type spots []spot

func (p spots) Len() int           { return len(p) }
func (p spots) Less(i, j int) bool { return p[i].weight > p[j].weight }
func (p spots) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *spots) Push(x any)        { *p = append(*p, x.(spot)) }
func (p *spots) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}
