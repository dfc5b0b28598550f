package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A Reader reads locks in the session of a client. It is safe for concurrent use. Close it
// after use.
type Reader struct {
	z      *zk.Client
	layout zklock.Layout
	own    *zklock.Client // with the reader's layout
	plain  *zklock.Client // with the default layout, for semaphores and node locks; may be equal to own
	// maxChildren and maxStrayNodes are maxWidth and maxStrays, except in tests.
	maxChildren, maxStrayNodes int
}

// NewReader returns a reader that uses z's session. The caller closes z after the reader.
// Pass the layout of the locks if it is a custom one, and else the zero Layout, which knows
// the entries of Curator, kazoo, go-zookeeper, and zklock.
func NewReader(z *zk.Client, layout zklock.Layout) *Reader {
	r := &Reader{z: z, layout: layout, maxChildren: maxWidth, maxStrayNodes: maxStrays, own: zklock.New(z, &zklock.Options{Anonymous: true, Layout: layout})}
	r.plain = r.own
	if layout != (zklock.Layout{}) {
		r.plain = zklock.New(z, &zklock.Options{Anonymous: true})
	}
	return r
}

// Close ends the reader. It leaves nothing on the servers.
func (r *Reader) Close() error {
	err := r.own.Close()
	if r.plain != r.own {
		err = errors.Join(err, r.plain.Close())
	}
	return err
}

// custom reports whether the reader has a custom layout.
func (r *Reader) custom() bool { return r.layout.Exclusive != "" }

// Read returns the lock with this name, of any kind. A lock without holders and waiters has
// no entries. If the path has too many children for one lock, Read does not read them, and
// the error wraps [ErrTooManyChildren].
func (r *Reader) Read(ctx context.Context, name string) (*Lock, error) {
	path, err := zklock.PathOf(name)
	if err != nil {
		return nil, err
	}
	if err := r.checkSize(ctx, path, false); err != nil {
		return nil, err
	}
	return r.readAt(ctx, path)
}

// readAt is Read for a path whose size was checked. In a layout with several locks in one
// parent, a path without entries may be a lock in the default layout. In other layouts, it may be
// one of several locks in one parent.
func (r *Reader) readAt(ctx context.Context, path string) (*Lock, error) {
	l, err := r.readWith(ctx, r.own, path, nil)
	if r.layout.InParent && (errors.Is(err, zklock.ErrInvalidName) || err == nil && len(l.Entries) == 0) {
		l, err = r.readWith(ctx, r.plain, path, nil)
	}
	if err == nil && l.Kind == KindQueue && len(l.Entries) == 0 { // a semaphore without clients has only its size
		err = r.readSize(ctx, l)
	}
	if err == nil && l.Kind == KindQueue && len(l.Entries) == 0 && !r.layout.InParent {
		other, err := r.readInParent(ctx, path)
		if other != nil || err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) && !isTooLarge(err) {
			return other, err
		}
	}
	return l, err
}

// ReadDetail is Read, and also counts the clients with a lock-delay that ended without a
// release, see [Lock].Crashed, and reads the last recorded run. It also returns an error
// that wraps [ErrTooManyChildren] if the path has many znodes that are not entries.
func (r *Reader) ReadDetail(ctx context.Context, name string) (*Lock, error) {
	path, err := zklock.PathOf(name)
	if err != nil {
		return nil, err
	}
	if err := r.checkSize(ctx, path, true); err != nil {
		return nil, err
	}
	// List the records before and after the entries. A client that arrives or
	// leaves in between has its record in only one list, and did not crash.
	before, err := r.records(ctx, path)
	if err != nil {
		return nil, err
	}
	l, err := r.readAt(ctx, path)
	if err != nil {
		return nil, err
	}
	after, err := r.records(ctx, path)
	if err != nil {
		return nil, err
	}
	gone := make(map[string]bool, len(before)) // records without an entry
	for _, record := range before {
		gone[record] = true
	}
	for _, e := range l.Entries {
		delete(gone, e.Name[:max(0, len(e.Name)-sequenceDigits)])
	}
	for _, record := range after {
		if gone[record] {
			l.Crashed++
		}
	}
	l.Warnings = l.warnings()
	l.LastRun, err = r.own.LastRun(ctx, path)
	if e := (*zklock.Error)(nil); errors.Is(err, zklock.ErrInvalidRun) && errors.As(err, &e) {
		l.Warnings = append(l.Warnings, strings.TrimPrefix(e.Err.Error(), "zklock: "))
		err = nil
	}
	return l, ignoreNoAuth(err)
}

// ignoreNoAuth returns err, or nil if the client may not read a znode.
func ignoreNoAuth(err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// maxReadBytes limits the memory for the entries of one lock.
const maxReadBytes = 256 << 20

// maxStrays is how many znodes that are not entries ReadDetail accepts at one lock.
const maxStrays = 20_000

// ErrTooManyChildren means that a path has too many znodes to be a lock, so that they were
// not read.
var ErrTooManyChildren = queue.ErrTooManyChildren

// sizeReads is the number of reads of checkSize, without closely.
const sizeReads = 4

// checkSize returns ErrTooManyChildren if one of the places where a lock has znodes has too
// many children. With closely, it also counts the children that are not entries, because
// ReadDetail reads them. It lists children only where there are many.
func (r *Reader) checkSize(ctx context.Context, path string, closely bool) error {
	places := []struct {
		path    string
		isEntry func(child string) bool // nil if all children are entries
	}{{path, r.isEntry}, {queue.LeasesPath(path), isContender}, {queue.GatePath(path), isContender}, {queue.Held(path), nil}}
	counts, errs := make([]int, len(places)), make([]error, len(places))
	var all sync.WaitGroup // ended when checkSize returns; the four requests go out together
	for i, at := range places {
		all.Go(func() {
			stat, _, err := r.z.Exists(ctx, at.path)
			counts[i], errs[i] = int(stat.NumChildren), err
		})
	}
	all.Wait()
	for i, at := range places {
		switch n, err := counts[i], errs[i]; {
		case errors.Is(err, zk.ErrNoAuth) && i > 0:
			continue
		case err != nil:
			return err
		case n > r.maxChildren:
			return tooManyChildren(at.path, n)
		case !closely || n <= r.maxStrayNodes || at.isEntry == nil:
			continue
		}
		names, _, err := r.z.Children(ctx, at.path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if strays := len(slices.DeleteFunc(names, at.isEntry)); strays > r.maxStrayNodes {
			return fmt.Errorf("%s: %w: %d are not entries; use a longer path", legible.Path(at.path), ErrTooManyChildren, strays)
		}
	}
	return nil
}

// tooManyChildren returns the error for a path with so many children.
func tooManyChildren(path string, n int) error {
	return fmt.Errorf("%s: %w: %d; use a longer path", legible.Path(path), ErrTooManyChildren, n)
}

// sequenceDigits is the number of digits that the servers append to the name of a
// sequential znode.
const sequenceDigits = 10

// records lists the lock-delay records of the lock at path.
func (r *Reader) records(ctx context.Context, path string) ([]string, error) {
	path = queue.Held(path)
	names, _, err := r.z.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if len(names) > r.maxChildren { // a hostile server stated another number
		return nil, tooManyChildren(path, len(names))
	}
	return slices.DeleteFunc(names, func(name string) bool { return !queue.IsRecord(name) }), err
}

// IsRecord reports whether the znode at path is what zklock keeps next to the znode of a lock,
// and no lock itself: the record of the last run, whichever client wrote it, or the parent of
// lock-delay records. If the parent is empty, the lock must exist.
func (r *Reader) IsRecord(ctx context.Context, path string) (bool, error) {
	if lock, ok := strings.CutSuffix(path, queue.Done("")); ok && !strings.HasSuffix(lock, "/") {
		data, _, err := r.z.Get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			return false, nil
		}
		var run struct {
			Began int64 `json:"began"`
		}
		return err == nil && json.Unmarshal(data, &run) == nil && run.Began > 0, err
	}
	lock, ok := strings.CutSuffix(path, queue.Held(""))
	if !ok || strings.HasSuffix(lock, "/") {
		return false, nil
	}
	names, _, err := r.z.Children(ctx, path)
	if err != nil || len(names) > 0 {
		return err == nil && !slices.ContainsFunc(names, func(name string) bool { return !queue.IsRecord(name) }), err
	}
	_, there, err := r.z.Exists(ctx, lock)
	return there, err
}

// readWith reads the lock at path with one of the clients. It does not read the znodes in
// before again. If ctx has no limits of the read, they are those of the Reader.
func (r *Reader) readWith(ctx context.Context, c *zklock.Client, path string, before []zklock.Entry) (*Lock, error) {
	if queue.ReadingOf(ctx) == nil {
		ctx = queue.NewReading(r.maxChildren, maxReadBytes).Context(ctx)
	}
	entries, err := c.InspectCached(ctx, path, before)
	if err != nil {
		return nil, err
	}
	entries, layout := arrange(entries)
	l := &Lock{Path: path, Kind: KindQueue, Layout: layout, Entries: make([]Entry, len(entries))}
	contends := false
	for i, e := range entries {
		if e.Node == e.Path && declaresLayout(e) { // an entry of a lock whose path is the parent
			e.Mode, e.Holder = zklock.Stray, false
		}
		misnamed := (c == r.plain || !r.custom()) && isMisnamed(e)
		l.Entries[i] = Entry{Entry: e, Recipe: RecipeOf(e), misnamed: misnamed}
		contends = contends || e.Mode != zklock.Stray
		switch {
		case e.Mode == zklock.Permit:
			l.Kind = KindSemaphore
		case e.Node == e.Path && e.Mode != zklock.Stray:
			l.Kind = KindNode
		}
	}
	switch {
	case !contends && l.takeKazooPermits():
		if err = r.readKazooPermits(ctx, l); err == nil {
			err = r.readKazooWaiters(ctx, l, before)
		}
	case l.Kind == KindSemaphore || !contends:
		err = r.readPermits(ctx, l)
	}
	l.describe()
	return l, err
}

// readPermits reads the size of the lock at l's path if it is a semaphore: the size that
// the servers store, or else the number that is noted next to its permits.
func (r *Reader) readPermits(ctx context.Context, l *Lock) error {
	data, _, err := r.z.Get(ctx, queue.LeasesPath(l.Path))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if n, bad := strconv.Atoi(string(data)); bad == nil && n > 0 {
		l.Kind, l.Permits = KindSemaphore, n
	}
	if err != nil {
		return err
	}
	return r.readSize(ctx, l)
}

// readSize reads the size that the servers store for the semaphore at l's path.
func (r *Reader) readSize(ctx context.Context, l *Lock) error {
	data, _, err := r.z.Get(ctx, queue.SizePath(l.Path))
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	if n, ok := queue.ParseSize(data); err == nil && ok && n > 0 {
		l.Kind, l.Permits, l.Resizable = KindSemaphore, n, true
	}
	return err
}

// readKazooPermits reads the size of kazoo's Semaphore at l's path.
func (r *Reader) readKazooPermits(ctx context.Context, l *Lock) error {
	data, _, err := r.z.Get(ctx, l.Path)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	if n, bad := strconv.Atoi(string(data)); bad == nil && n > 0 {
		l.Permits = n
	}
	return err
}

// readKazooWaiters adds the waiters of kazoo's Semaphore at l's path. It does not read the
// znodes in before again.
func (r *Reader) readKazooWaiters(ctx context.Context, l *Lock, before []zklock.Entry) error {
	path := l.Path + kazooGate
	stat, _, err := r.z.Exists(ctx, path)
	if err != nil {
		return ignoreNoAuth(err)
	}
	if n := int(stat.NumChildren); n > r.maxChildren {
		return tooManyChildren(path, n)
	}
	gate, err := r.plain.InspectCached(ctx, path, before)
	if errors.Is(err, zklock.ErrInvalidName) { // the name of the semaphore is as long as a name can be
		return nil
	}
	l.addKazooWaiters(gate)
	return ignoreNoAuth(err)
}

// isKazooGate reports whether the lock at path is the gate of a semaphore of kazoo with a
// holder, which has all entries of the gate as its waiters. It costs no request if the path
// has another name.
func (r *Reader) isKazooGate(ctx context.Context, path string) (bool, error) {
	base, ok := strings.CutSuffix(path, kazooGate)
	if !ok || base == "" || strings.HasSuffix(base, "/") {
		return false, nil
	}
	stat, _, err := r.z.Exists(ctx, base)
	if err != nil || stat.NumChildren == 0 || int(stat.NumChildren) > r.maxChildren {
		return false, ignoreNoAuth(err)
	}
	l, err := r.readWith(ctx, r.plain, base, nil)
	if errors.Is(err, zklock.ErrInvalidName) {
		return false, nil
	}
	return l.hasKazooGate(), ignoreNoAuth(err)
}

// describe sets the fields that follow from the entries.
func (l *Lock) describe() {
	turn := 0
	for i := range l.Entries {
		e := &l.Entries[i]
		switch {
		case e.Mode == zklock.Stray:
			e.Position = -1
		case !e.Holder:
			// Both entries of an acquire in the mixed layout have one position.
			if i == 0 || !SameAcquire(l.Entries[i-1].Entry, e.Entry) {
				turn++
			}
			e.Position = turn
		}
		if text := e.Recipe.String(); e.Mode != zklock.Stray && !slices.Contains(l.Layouts, text) {
			l.Layouts = append(l.Layouts, text)
		}
	}
	slices.Sort(l.Layouts)
	l.Warnings = l.warnings()
}

// clientOf returns the client with the layout of the lock's entries. With several locks in one
// parent, readAt may have read the lock's path with the default layout.
func (r *Reader) clientOf(l *Lock) *zklock.Client {
	if len(l.Entries) > 0 {
		e := l.Entries[0]
		if l.Kind != KindQueue || r.layout.InParent && e.Node == l.Path+"/"+e.Name {
			return r.plain
		}
	}
	return r.own
}

// mostPermits limits the size of a semaphore that the servers can claim.
const mostPermits = 1 << 20

// Revoke sends a release request to the holders of a lock of any kind, and returns their
// entries. If token is not 0, only the holder with that fencing token receives it. With an
// error, Revoke returns the entries that received the request before the error.
func (r *Reader) Revoke(ctx context.Context, l *Lock, token int64) ([]Entry, error) {
	return r.RequestRelease(ctx, l, token, zklock.ReleaseRequest{})
}

// RequestRelease is Revoke with a request that says which client asks and why.
func (r *Reader) RequestRelease(ctx context.Context, l *Lock, token int64, request zklock.ReleaseRequest) ([]Entry, error) {
	if err := l.CheckToken(token); err != nil {
		return nil, err
	}
	// A semaphore's path may also have a queue, whose holders hold.
	locks := []*zklock.Lock{r.clientOf(l).Mutex(l.Path)}
	switch l.Kind {
	case KindNode:
		locks[0] = r.plain.NodeLock(l.Path)
	case KindSemaphore:
		// If the size is not stored, all existing permits may be held. The stored
		// number may be nonsense.
		of := min(cmp.Or(max(l.Permits, len(l.Holders())), 1), mostPermits)
		held := l.HoldersWith(token)
		if token != 0 && len(held) > 0 && held[0].Mode == zklock.Permit {
			locks = nil // the hold has no entries in the queue
		}
		locks = append(locks, r.plain.Semaphore(l.Path, of))
	}
	var asked []Entry
	for _, lock := range locks {
		more, err := lock.RequestRelease(ctx, token, request)
		for _, e := range more {
			asked = append(asked, Entry{Entry: e, Recipe: RecipeOf(e)})
		}
		if err != nil {
			return asked, err
		}
	}
	return asked, nil
}
