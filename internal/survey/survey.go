package survey

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/takeaway"
	"github.com/zklock/zklock/zk"
)

// A Survey keeps the locks below a prefix current while [Survey.Run] runs. It is safe
// for concurrent use.
type Survey struct {
	*Reader
	opts    Options
	started time.Time
	wake    chan struct{} // holds one while there is something for Run to do
	budget  budget        // Run's alone
	armed   int64         // the session in which the servers were asked to tell of changes; Run's alone
	// watch asks them: the client's AddWatch.
	watch func(ctx context.Context, path string, mode zk.AddWatchMode) error

	mu     sync.Mutex // guards what follows; not held across a call into zk or a channel operation
	status Status
	conn   uint64            // number of the connection, 0 without one
	tracks map[string]*track // by the locks' paths
	dirty  []string          // paths of locks that are to be read, in the order of their changes
	// curious are znodes that came and may be locks of one znode.
	curious map[string]time.Time
	skipped bool   // there were too many of those
	walked  bool   // the last walk was not interrupted
	whole   uint64 // the connection on which that began
	// semaphores are paths that have a child named leases.
	semaphores map[string]bool
	records    map[string]bool // paths of the records of lock delays that were seen to come
	suspects   []ending        // holds that may have been lost
	broken     map[string]bool // znodes that Break took away, until their events come
	event      int64           // counts events
	batch      []change        // events that came since the last were worked off
	all        chronicle
	snapshot   *Snapshot
	stale      bool     // the snapshot is not what is known
	fresh      []string // paths of the locks that it has in another state
	changed    chan struct{}
	gone       []departure
}

// track is what is known of one lock. A lock that nobody holds keeps it for its
// history.
type track struct {
	lock  *Lock // as it was read last; nil while nobody holds or waits, or it was not read yet
	line  line
	dirty time.Time       // since when it is to be read; zero if it is not
	since int64           // number of the last event for which it is to be read
	data  map[string]bool // znodes of it whose data changed
	fresh bool            // the snapshot has it in another state
	// whose hold ended last, as far as that is known
	session, token int64
	chronicle
}

// departure is a lock that nobody holds any more.
type departure struct {
	path    string
	version uint64
}

// Bounds of what is kept.
const (
	mostTracks     = 50_000 // histories of locks that nobody holds are given up beyond
	mostCurious    = 10_000
	mostDepartures = 10_000
)

// New returns a survey in z's session, which stays the caller's to close, after the
// survey. Nothing is read before Run. A nil opts means the zero Options.
func New(z *zk.Client, opts *Options) *Survey {
	if opts == nil {
		opts = &Options{}
	}
	s := &Survey{
		opts: opts.filled(), Reader: NewReader(z, opts.Layout), started: time.Now(), wake: make(chan struct{}, 1),
		tracks: map[string]*track{}, curious: map[string]time.Time{}, semaphores: map[string]bool{}, records: map[string]bool{}, broken: map[string]bool{},
		all: chronicle{step: stepOfAll}, changed: make(chan struct{}),
	}
	s.watch = z.AddWatch
	s.budget = budget{rate: float64(s.opts.ReadRate)}
	s.status = Status{
		Prefix: s.opts.Prefix, Started: s.started, ReadRate: s.opts.ReadRate,
		WalkReads: s.opts.Limits.Reads + s.opts.Limits.LockReads,
	}
	s.snapshot = &Snapshot{Version: 1, At: s.started, Locks: []*Lock{}, Status: s.status}
	return s
}

// Snapshot is what is known at present. It may be shared and must not be changed.
func (s *Survey) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot
}

// Status is how well the survey knows at present what it shows.
func (s *Survey) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.snapshot.Status
	status.Connected, status.Reads, status.Events = s.status.Connected, s.status.Reads, s.status.Events
	if status.Behind = len(s.dirty); status.Connected {
		status.Heard = time.Now()
	}
	return status
}

// Changed returns a channel that is closed when there is a snapshot after the present
// one. Ask for it before the snapshot.
func (s *Survey) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Gone returns the paths of the locks that ceased to be held and waited for after the
// snapshot of this version, some perhaps twice or held again by now; false if that is
// too long ago to be told.
func (s *Survey) Gone(since uint64) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.gone) == mostDepartures && s.gone[0].version > since {
		return nil, false
	}
	var paths []string
	for i := len(s.gone) - 1; i >= 0 && s.gone[i].version > since; i-- {
		paths = append(paths, s.gone[i].path)
	}
	return paths, true
}

// Lock returns the lock at path in the snapshot, or nil.
func (s *Snapshot) Lock(path string) *Lock {
	i, found := slices.BinarySearchFunc(s.Locks, path, byPath)
	if !found {
		return nil
	}
	return s.Locks[i]
}

func byPath(l *Lock, path string) int { return strings.Compare(l.Path, path) }

// History is that of the lock at path, or of all locks if path is empty. A lock of
// which nothing is known has one in which nothing happened.
func (s *Survey) History(path string) History {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if path == "" {
		return s.all.history(s.started, now)
	}
	if t := s.tracks[path]; t != nil {
		return t.history(s.started, now)
	}
	return (&chronicle{step: stepOfOne}).history(s.started, now)
}

// Break takes the lock of this name away from the holder with this fencing token,
// see package takeaway, and returns its entries, of which node is one: anybody's data
// may claim another's token. The error wraps [takeaway.ErrOther] if nobody holds it so.
func (s *Survey) Break(ctx context.Context, name, node string, token int64) ([]Entry, error) {
	l, err := s.Look(ctx, name)
	if err == nil {
		err = l.Certain()
	}
	if err != nil {
		return nil, err
	}
	entries := make([]zklock.Entry, len(l.Entries))
	for i, e := range l.Entries {
		entries[i] = e.Entry
	}
	var nodes []string
	for _, e := range takeaway.Holds(entries, token) {
		nodes = append(nodes, e.Node)
	}
	if !slices.Contains(nodes, node) {
		return nil, takeaway.ErrOther
	}
	// Before it happens: the events may come before the answer.
	s.mark(nodes, true)
	taken, err := takeaway.Break(ctx, s.z, entries, token)
	if err != nil {
		s.mark(nodes, false)
		return nil, err
	}
	held := make([]Entry, len(taken))
	for i, e := range taken {
		held[i] = Entry{Entry: e, Recipe: RecipeOf(e)}
	}
	return held, nil
}

// mark takes note that the end of these znodes is Break's doing, or is not.
func (s *Survey) mark(nodes []string, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, node := range nodes {
		if broken {
			s.broken[node] = true
		} else {
			delete(s.broken, node)
		}
	}
}

// Run keeps the survey current until ctx ends, and returns its error; or an error of
// the client's that no waiting mends. It may be called once.
func (s *Survey) Run(ctx context.Context) error {
	stop := s.z.Listen(zk.Listener{State: s.onState, Event: s.onEvent, Drained: s.onDrained})
	defer stop()
	again := firstAgain
	for {
		conn, err := s.connected(ctx)
		if err != nil {
			return err
		}
		s.arm(ctx)
		least := s.opts.Rewalk
		if s.walkAll(ctx) {
			again = firstAgain
		} else {
			least = min(least, again)
			again = 2 * least
		}
		if err := s.follow(ctx, conn, least); err != nil {
			return err
		}
	}
}

// firstAgain is how long after a walk that was interrupted the next one begins. It is
// twice as long after each that follows, up to Rewalk.
const firstAgain = time.Second

// errOver is why a survey can't go on.
var errOver = errors.New("survey: the client is closed, or its credentials were refused")

// connected waits until there is a connection, and returns its number.
func (s *Survey) connected(ctx context.Context) (uint64, error) {
	for {
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		if state := s.z.State(); state == zk.Closed || state == zk.AuthFailed {
			return 0, errOver
		}
		if conn != 0 {
			return conn, ctx.Err()
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-s.wake:
		}
		s.publish()
	}
}

// arm asks the servers to tell of changes, unless they do so in this session or can't.
func (s *Survey) arm(ctx context.Context) {
	session := s.z.SessionID()
	if session == s.armed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.Each)
	defer cancel()
	err := s.watch(ctx, s.opts.Prefix, zk.WatchRecursive)
	if err == nil || errors.Is(err, zk.ErrUnimplemented) {
		s.armed = session
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Live, s.stale = err == nil, true
}

// walkAll looks at everything, and reports false if something came in between.
func (s *Survey) walkAll(ctx context.Context) bool {
	s.mu.Lock()
	since, conn := s.event, s.conn
	s.status.Walking, s.stale = true, true
	s.mu.Unlock()
	limits := s.opts.Limits
	limits.Found = func(l *Lock) { s.adopt(l.Path, l, since) }
	// What it finds is shown while it is still looking. The goroutine ends with
	// the walk.
	over := make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() { s.show(over) })
	found, err := s.walk(ctx, s.opts.Prefix, walkOptions{limits, s.known, s.isSemaphore})
	close(over)
	showing.Wait()
	s.mu.Lock()
	s.status.Walking, s.status.Walked, s.stale = false, true, true
	s.status.Reads += found.Reads
	s.status.Complete, s.status.Why = err == nil, ""
	if err != nil {
		s.status.Why = err.Error()
	}
	if err == nil && s.status.Live {
		s.skipped = false
	}
	// Those that were there before and were not found may be gone.
	there := make(map[string]bool, len(found.Locks))
	for _, l := range found.Locks {
		there[l.Path] = true
	}
	for path, t := range s.tracks {
		if t.lock != nil && !there[path] {
			s.soil(path, t)
		}
	}
	s.walked = err == nil || errors.Is(err, ErrTooMany) || errors.Is(err, ErrHidden) || errors.Is(err, ErrInvalid)
	done := s.walked
	if done {
		s.whole = conn
	}
	s.mu.Unlock()
	s.publish()
	return done
}

// show publishes until over is closed.
func (s *Survey) show(over <-chan struct{}) {
	tick := time.NewTicker(max(s.opts.Settle, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			s.publish()
		}
	}
}

// follow reads what has changed until there is a reason to walk again, but at least
// for this time.
func (s *Survey) follow(ctx context.Context, conn uint64, least time.Duration) error {
	walked := time.Now()
	for {
		s.mu.Lock()
		other := s.conn != conn && s.conn != 0
		again := other || !s.status.Live || !s.walked
		s.mu.Unlock()
		if other {
			s.arm(ctx)
		}
		if again && time.Since(walked) >= least {
			return nil
		}
		wait := s.work(ctx)
		s.publish()
		if again {
			wait = min(wait, least-time.Since(walked))
		}
		if state := s.z.State(); state == zk.Closed || state == zk.AuthFailed {
			return errOver
		}
		timer := time.NewTimer(max(wait, time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-s.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}
