package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A Reader looks at locks in a session of its user's. It is safe for concurrent
// use, and must be closed.
type Reader struct {
	z      *zk.Client
	layout zklock.Layout
	own    *zklock.Client // in that layout
	plain  *zklock.Client // in the default one, for semaphores and single znodes; it may be the same
	// wide and strays are maxWidth and maxStrays, but in tests.
	wide, strays int
}

// NewReader returns a reader that uses z, which stays the caller's to close, after
// the reader. The layout is that of the locks, where it is one of the user's own.
//
// Its clients ask a quorum now and then whether the session lives, as all of package
// zklock do: a check without an effect, every eighth of the session's timeout.
func NewReader(z *zk.Client, layout zklock.Layout) *Reader {
	r := &Reader{z: z, layout: layout, wide: maxWidth, strays: maxStrays, own: zklock.New(z, &zklock.Options{Anonymous: true, Layout: layout})}
	r.plain = r.own
	if layout != (zklock.Layout{}) {
		r.plain = zklock.New(z, &zklock.Options{Anonymous: true})
	}
	return r
}

// Close ends the reader. Nothing is left on the servers.
func (r *Reader) Close() error {
	err := r.own.Close()
	if r.plain != r.own {
		err = errors.Join(err, r.plain.Close())
	}
	return err
}

// custom reports whether the layout is one of the user's own.
func (r *Reader) custom() bool { return r.layout.Exclusive != "" }

// Look reads the lock of this name, of whatever kind; one that nobody holds or
// waits for has no entries. What has more znodes than are listed, and so is hardly a
// lock, it does not read: the error wraps [ErrCrowded]. Where the layout has several locks in one parent, and
// none of that name, it may be of a kind that knows no layout, as a semaphore, or
// another program's.
func (r *Reader) Look(ctx context.Context, name string) (*Lock, error) {
	path, err := zklock.PathOf(name)
	if err != nil {
		return nil, err
	}
	if err := r.crowded(ctx, path, false); err != nil {
		return nil, err
	}
	return r.lookAt(ctx, path)
}

// lookAt is Look for one who has seen that the path is not crowded.
func (r *Reader) lookAt(ctx context.Context, path string) (*Lock, error) {
	l, err := r.look(ctx, r.own, path, nil)
	if r.layout.InParent && (errors.Is(err, zklock.ErrInvalidName) || err == nil && len(l.Entries) == 0) {
		l, err = r.look(ctx, r.plain, path, nil)
	}
	return l, err
}

// LookClosely is Look, and reads besides who vanished that had a lock delay. What has
// a great many znodes that are no entries, and so is hardly a lock, it does not read:
// the error wraps [ErrCrowded].
func (r *Reader) LookClosely(ctx context.Context, name string) (*Lock, error) {
	path, err := zklock.PathOf(name)
	if err != nil {
		return nil, err
	}
	if err := r.crowded(ctx, path, true); err != nil {
		return nil, err
	}
	// The records before the entries and after them: who comes or goes meanwhile
	// has a record in one of the two listings only, and did not vanish.
	before, err := r.records(ctx, path)
	if err != nil {
		return nil, err
	}
	l, err := r.lookAt(ctx, path)
	if err != nil {
		return nil, err
	}
	after, err := r.records(ctx, path)
	if err != nil {
		return nil, err
	}
	made := map[string]bool{} // by whom the entries are, as their records are named
	for _, e := range l.Entries {
		made[e.Name[:max(0, len(e.Name)-sequenceDigits)]] = true
	}
	for _, record := range after {
		if slices.Contains(before, record) && !made[record] {
			l.Vanished++
		}
	}
	l.Warnings = l.warnings()
	return l, nil
}

// maxStrays is how many znodes that are no entries are read of one lock.
const maxStrays = 20_000

// ErrCrowded is for a path with too many znodes to be read.
var ErrCrowded = errors.New("too many znodes to be one lock's")

// crowded refuses a path with more children than are listed, in any of the places where
// a lock has some; and for who looks closely, and so reads what is no entry as well, one
// with too many of those. Only where there are many znodes they are listed for it.
func (r *Reader) crowded(ctx context.Context, path string, closely bool) error {
	places := []struct {
		path    string
		isEntry func(child string) bool // nil where all are
	}{{path, r.isEntry}, {path + "/leases", isContender}, {path + "/locks", isContender}, {path + heldSuffix, nil}}
	counts, errs := make([]int, len(places)), make([]error, len(places))
	var all sync.WaitGroup // ended when it returns; the four are asked in one go
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
		case n > r.wide:
			return fmt.Errorf("%s: %w: %d; look for locks below it", legible.Path(at.path), ErrCrowded, n)
		case !closely || n <= r.strays || at.isEntry == nil:
			continue
		}
		names, _, err := r.z.Children(ctx, at.path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if strays := len(slices.DeleteFunc(names, at.isEntry)); strays > r.strays {
			return fmt.Errorf("%s: %w: %d are no entries; look for locks below it", legible.Path(at.path), ErrCrowded, strays)
		}
	}
	return nil
}

// heldSuffix ends the paths of the parents of lock delays' records.
const heldSuffix = "-held"

// sequenceDigits is how many digits the servers append to a sequential znode's name.
const sequenceDigits = 10

// records lists the records of lock delays beside the lock at path.
func (r *Reader) records(ctx context.Context, path string) ([]string, error) {
	names, _, err := r.z.Children(ctx, path+heldSuffix)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return slices.DeleteFunc(names, func(name string) bool { return !queue.IsRecord(name) }), err
}

// look reads the lock at path by one of the clients, without the znodes that before
// has.
func (r *Reader) look(ctx context.Context, c *zklock.Client, path string, before []zklock.Entry) (*Lock, error) {
	entries, err := c.Reinspect(ctx, path, before)
	if err != nil {
		return nil, err
	}
	entries, layout := adopt(entries)
	l := &Lock{Path: path, Kind: Queue, Layout: layout, Entries: make([]Entry, len(entries))}
	contends := false
	for i, e := range entries {
		if e.Node == e.Path && claimed(e) { // an entry of a lock above
			e.Mode, e.Holder = zklock.Stray, false
		}
		l.Entries[i] = Entry{Entry: e, Recipe: RecipeOf(e)}
		contends = contends || e.Mode != zklock.Stray
		switch {
		case e.Mode == zklock.Permit:
			l.Kind = Semaphore
		case e.Node == e.Path && e.Mode != zklock.Stray:
			l.Kind = Node
		}
	}
	if l.Kind == Semaphore || !contends {
		err = r.readPermits(ctx, l)
	}
	l.describe()
	return l, err
}

// readPermits reads how many permits there are, if this is a semaphore.
func (r *Reader) readPermits(ctx context.Context, l *Lock) error {
	data, _, err := r.z.Get(ctx, l.Path+"/leases")
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if n, bad := strconv.Atoi(string(data)); bad == nil && n > 0 {
		l.Kind, l.Permits = Semaphore, n
	}
	return err
}

// describe sets what follows from the entries.
func (l *Lock) describe() {
	turn := 0
	for i := range l.Entries {
		e := &l.Entries[i]
		switch {
		case e.Mode == zklock.Stray:
			e.Turn = -1
		case !e.Holder:
			// Both entries of an attempt in the mixed layout have one turn.
			if i == 0 || !Together(l.Entries[i-1].Entry, e.Entry) {
				turn++
			}
			e.Turn = turn
		}
		if text := e.Recipe.String(); e.Mode != zklock.Stray && !slices.Contains(l.Layouts, text) {
			l.Layouts = append(l.Layouts, text)
		}
	}
	slices.Sort(l.Layouts)
	l.Warnings = l.warnings()
}

// clientOf is the client whose layout a lock's entries are in.
func (r *Reader) clientOf(l *Lock) *zklock.Client {
	if r.plain == r.own || len(l.Entries) == 0 || l.Kind == Queue && l.Entries[0].Recipe.Kind == kindCustom {
		return r.own
	}
	return r.plain
}

// mostPermits bounds what is believed of a semaphore's number.
const mostPermits = 1 << 20

// Revoke asks the holders of a lock, of whatever kind, to give it back, and returns
// whom it asked; with a token that is not 0 it asks the holder that has it alone. With
// an error come those who were asked before it.
func (r *Reader) Revoke(ctx context.Context, l *Lock, token int64) ([]Entry, error) {
	if err := l.Certain(); err != nil {
		return nil, err
	}
	// A path may have a queue besides: a warning of show's, but its holders hold.
	locks := []*zklock.Lock{r.clientOf(l).Mutex(l.Path)}
	switch l.Kind {
	case Node:
		locks[0] = r.plain.NodeLock(l.Path)
	case Semaphore:
		// All permits that exist may be held where nobody wrote how many there are.
		// And what somebody wrote there may be no number of permits at all.
		locks = append(locks, r.plain.Semaphore(l.Path, min(cmp.Or(max(l.Permits, len(l.Holders())), 1), mostPermits)))
	}
	var asked []Entry
	for _, lock := range locks {
		ask := lock.Revoke
		if token != 0 {
			ask = func(ctx context.Context) ([]zklock.Entry, error) { return lock.RevokeToken(ctx, token) }
		}
		more, err := ask(ctx)
		for _, e := range more {
			asked = append(asked, Entry{Entry: e, Recipe: RecipeOf(e)})
		}
		if err != nil {
			return asked, err
		}
	}
	return asked, nil
}
