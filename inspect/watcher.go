package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// A Watcher keeps the list of the locks below a prefix current while [Watcher.Run] runs. It
// is safe for concurrent use.
//
// If the client loses the permission to read a lock, the servers report no changes of that
// lock. The watcher shows it as before until the next read, at the latest after the next lost
// connection, and then omits it. The servers do not report the creation of a znode that the client
// may not read, either: the watcher does not know of such a lock before the next listing.
type Watcher struct {
	*Reader
	opts WatchOptions
	// wake has a value for each of the two goroutines that read while there is work to do.
	wake [speeds]chan struct{}

	mu     sync.Mutex // guards what follows; not held across a call into zk or a channel operation
	status Status
	conn   uint64            // number of the connection; 0 without a connection
	tracks map[string]*track // by lock path
	// bytes and pastBytes are the sums of those of tracks.
	bytes, pastBytes int
	// omitted are the locks that the last read of them could not read, and why. Each has a
	// track.
	omitted map[string]error
	// unlisted are the paths that the last listing could not read, and why. It is not modified.
	unlisted map[string]error
	partial  bool // the last listing missed more than these
	// relisted are those of unlisted that were read meanwhile, and whose locks were therefore listed
	// again. They do not cause another listing until a read of them fails.
	relisted map[string]bool
	schedule schedule // the jobs of tracks and newNodes
	budget   budget
	// newNodes are znodes that were created and may be node locks, by path.
	newNodes     map[string]*newNode
	missed       int64           // counts the events for which newNodes or tracks had no room
	missedBefore int64           // missed at the begin of the last listing
	evicted      time.Time       // when tracks was last searched for some to drop
	listComplete bool            // the last listing was not interrupted, and all that it could not read is still unread
	listConn     uint64          // the connection on which that listing began
	records      map[string]bool // paths of lock-delay records whose creation was seen
	suspects     []ending        // holds that may have been lost, not released
	lastEnded    []ending        // holds that ended in the transaction lastZxid
	lastZxid     int64           // of the last transaction that had one
	broken       map[string]bool // znodes that Break deleted, until their events arrive
	event        int64           // counts events
	batch        []change        // events that were not processed yet
	all          recorder
	log          eventLog
	snapshot     *Snapshot
	unpublished  bool     // the snapshot does not have the latest state
	changedPaths []string // paths of the locks that changed since the snapshot
	changed      chan struct{}
	removals     []removal
}

// track is what the watcher knows about one lock. A lock without a holder keeps its track
// for the history.
type track struct {
	readJob
	lock    *Lock      // as last read; nil if it has no holder or waiter, or was not read yet
	entries entryIndex // of lock; built when it is first used
	line    lockQueue
	since   int64 // number of the last event that made it outdated
	again   reread
	changed bool // it changed since the snapshot
	// semaphore reports whether the path has a child named leases.
	semaphore bool
	// bytes is the estimated memory of path, lock, line, and again, which grow with what strangers
	// create, lockBytes that of lock, and pastBytes that of points, events, and unnamed.
	bytes, lockBytes, pastBytes int
	// of the hold that ended last, if known
	session, token int64
	events         []*Event  // the last ones, oldest first
	unnamed        []unnamed // since the lock was last read
	recorder
}

// setBytes computes the bytes of a track that has changed. If the histories of all locks take
// too much, it drops that of the track. The caller holds the mutex.
func (s *Watcher) setBytes(t *track) {
	s.bytes -= t.bytes
	s.pastBytes -= t.pastBytes
	t.bytes = len(t.path) + t.lockBytes + t.line.bytes + t.again.bytes
	if t.pastBytes = t.estimatePast(); s.pastBytes+t.pastBytes > maxPastBytes {
		t.points, t.events, t.unnamed, t.pastBytes = nil, nil, nil, 0
	}
	s.bytes += t.bytes
	s.pastBytes += t.pastBytes
}

// estimatePast estimates the memory of the points, events, and unnamed events.
func (t *track) estimatePast() int {
	n := 0
	for _, p := range t.points {
		n += pointBytes + bucketBytes*(cap(p.wait.counts)+cap(p.hold.counts))
	}
	for _, e := range t.events {
		n += eventBytes + len(e.OwnerName) + len(e.By) + len(e.Reason)
	}
	for _, u := range t.unnamed {
		n += eventBytes + len(u.name)
	}
	return n
}

// removal is a lock that no longer has a holder or a waiter.
type removal struct {
	path    string
	version uint64
}

// Limits of what a watcher keeps.
const (
	// Above these two, the watcher drops histories of free locks, or misses new locks until it
	// lists. It omits locks with more bytes.
	maxTracks     = 50_000
	maxTrackBytes = 4 * maxFoundBytes
	// Above this, the watcher drops histories.
	maxPastBytes = 4 * maxFoundBytes
	maxNewNodes  = 10_000
	maxRemovals  = 10_000
)

// Estimated memory of parts of a history.
const (
	pointBytes  = 128
	bucketBytes = 8
	eventBytes  = 192 // without the owner's name and a request
)

// NewWatcher returns a watcher that uses z's session. The caller closes z after the
// watcher. A nil opts means the zero WatchOptions. The watcher reads nothing before
// [Watcher.Run].
func NewWatcher(z *zk.Client, opts *WatchOptions) *Watcher {
	if opts == nil {
		opts = &WatchOptions{}
	}
	s := &Watcher{
		opts: opts.withDefaults(), Reader: NewReader(z, opts.Layout),
		wake:   [speeds]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)},
		tracks: map[string]*track{}, newNodes: map[string]*newNode{}, omitted: map[string]error{},
		relisted: map[string]bool{}, records: map[string]bool{}, broken: map[string]bool{},
		all: recorder{step: stepOfAll}, changed: make(chan struct{}),
	}
	s.budget = budget{rate: float64(s.opts.MaxReadRate)}
	s.status = Status{
		Prefix: s.opts.Prefix, Started: time.Now(), MaxReadRate: s.opts.MaxReadRate,
		MaxListReads: s.opts.List.MaxReads + s.opts.List.MaxLockReads,
	}
	s.snapshot = &Snapshot{Version: 1, At: s.status.Started, Locks: []*Lock{}, Status: s.status, partial: true}
	return s
}

// Snapshot returns the latest snapshot. The caller must not modify it, because other
// callers share it.
func (s *Watcher) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot
}

// Status returns how current and how complete the watcher's list is.
func (s *Watcher) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.snapshot.Status
	status.Connected, status.Reads, status.Events = s.status.Connected, s.status.Reads, s.status.Events
	if status.Pending = s.schedule.pending; status.Connected {
		status.LastContact = time.Now()
	}
	return status
}

// Changed returns a channel that is closed when a newer snapshot exists. To miss no
// snapshot, call Changed before Snapshot.
func (s *Watcher) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Removed returns the paths of the locks that lost their last holder and waiter after the
// snapshot of this version. A path may occur twice, and its lock may have a holder again.
// Removed returns false if it no longer knows all of them.
func (s *Watcher) Removed(since uint64) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.removals) == maxRemovals && s.removals[0].version > since {
		return nil, false
	}
	var paths []string
	for i := len(s.removals) - 1; i >= 0 && s.removals[i].version > since; i-- {
		paths = append(paths, s.removals[i].path)
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

// History returns the history of the lock at path, or of all locks if path is empty. For an
// unknown lock it returns a history without events.
func (s *Watcher) History(path string) History {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if path == "" {
		return s.all.history(s.status.Started, now)
	}
	if t := s.tracks[path]; t != nil {
		return t.history(s.status.Started, now)
	}
	return (&recorder{step: stepOfOne}).history(s.status.Started, now)
}

// Break deletes the znodes of the hold with this fencing token, as the function [Break]
// does, and returns its entries. The hold must include node, and only entries that the same
// transaction created belong to it, because any data can claim its token. The error wraps
// [ErrNotHeld] if no hold has the token and the node, and [zk.ErrNoAuth] as that of the function.
// The watcher counts the hold as broken.
func (s *Watcher) Break(ctx context.Context, name, node string, token int64) ([]Entry, error) {
	l, err := s.Read(ctx, name)
	if err == nil {
		err = l.CheckToken(token)
	}
	if err != nil {
		return nil, err
	}
	entries := make([]zklock.Entry, len(l.Entries))
	for i, e := range l.Entries {
		entries[i] = e.Entry
	}
	held := holdEntries(entries, token)
	i := slices.IndexFunc(held, func(e zklock.Entry) bool { return e.Node == node })
	if i < 0 {
		return nil, notHeld(entries, token)
	}
	czxid := held[i].Czxid
	held = slices.DeleteFunc(held, func(e zklock.Entry) bool { return e.Czxid != czxid })
	var nodes []string
	for _, e := range held {
		nodes = append(nodes, e.Node)
	}
	// Before the delete, because the events may arrive before the answer.
	s.markBroken(nodes, true)
	taken, err := Break(ctx, s.z, held, token)
	if err != nil {
		s.markBroken(nodes, false)
		return nil, err
	}
	broken := make([]Entry, len(taken))
	for i, e := range taken {
		broken[i] = Entry{Entry: e, Recipe: RecipeOf(e)}
	}
	return broken, nil
}

// markBroken notes that Break deletes these znodes, or that it did not.
func (s *Watcher) markBroken(nodes []string, broken bool) {
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

// Run keeps the list current until ctx ends, and then returns ctx's error. It returns
// another error if the client is closed or its credentials are refused. Call it once.
func (s *Watcher) Run(ctx context.Context) error {
	stop := s.z.Listen(zk.Listener{State: s.onState, Event: s.onEvent, Drained: s.onDrained})
	defer stop()
	again := firstRetry
	for {
		if _, err := s.connected(ctx); err != nil {
			return err
		}
		s.addWatch(ctx)
		conn, err := s.connected(ctx) // an old server may have ended the former connection
		if err != nil {
			return err
		}
		least := s.opts.RelistInterval
		if s.listAll(ctx) {
			again = firstRetry
		} else {
			least = min(least, again)
			again = 2 * least
		}
		if err := s.follow(ctx, conn, least); err != nil {
			return err
		}
	}
}

// firstRetry is the delay before a listing that was interrupted starts again. It doubles
// with each interruption, up to RelistInterval.
const firstRetry = time.Second

// errClosed ends Run, because no later attempt can succeed.
var errClosed = errors.New("inspect: the client is closed, or the server refused its credentials")

// connected waits for a connection and returns its number.
func (s *Watcher) connected(ctx context.Context) (uint64, error) {
	for {
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		if state := s.z.State(); state == zk.Closed || state == zk.AuthFailed {
			return 0, errClosed
		}
		if conn != 0 {
			return conn, ctx.Err()
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-s.wake[quick]:
		}
		s.publish()
	}
}

// addWatch adds the recursive watch, unless the servers have it. Servers before 3.6 do not
// support it. The client knows them, and does not ask them again before they are upgraded.
func (s *Watcher) addWatch(ctx context.Context) {
	s.mu.Lock()
	watching := s.status.Watching
	s.mu.Unlock()
	if watching {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.List.Timeout)
	defer cancel()
	err := s.z.AddWatch(ctx, s.opts.Prefix, zk.WatchRecursive)
	if errors.Is(err, zk.ErrUnimplemented) {
		// The connection may have ended. The client reports that before the result of the
		// next request.
		_, _, _ = s.z.Exists(ctx, s.opts.Prefix)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Watching, s.unpublished = err == nil, true
	if err == nil { // without the watch, changes may have been missed
		s.markAllDirty()
	}
}

// listAll lists all locks below the prefix. It reports false if the listing was
// interrupted.
func (s *Watcher) listAll(ctx context.Context) bool {
	s.mu.Lock()
	since, conn, missed := s.event, s.conn, s.missed
	var delayed func(path string) bool
	if conn == s.listConn { // on another connection, the servers may be faster
		delayed = s.isDelayed
	}
	s.status.Listing, s.unpublished = true, true
	s.mu.Unlock()
	limits := s.opts.List
	limits.OnLock = func(l *Lock) { s.update(l.Path, l, since) }
	// Publish what the listing finds while it runs. The goroutine ends with the
	// listing.
	over := make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() { s.show(over) })
	opts := listOptions{limits, s.knownEntries, s.noteSemaphore, delayed}
	found, err := s.list(ctx, s.opts.Prefix, opts)
	close(over)
	showing.Wait()
	s.mu.Lock()
	s.status.Listing, s.status.Listed, s.unpublished = false, true, true
	s.status.Reads += found.Reads
	s.status.Complete, s.status.Reason = err == nil, ""
	s.unlisted, s.partial = found.omitted, found.partial
	maps.DeleteFunc(s.relisted, func(path string, _ bool) bool { return s.unlisted[path] == nil })
	if err != nil {
		s.status.Reason = err.Error()
	}
	for path, why := range s.unlisted {
		if why == errSlow {
			s.readLater(path)
		}
	}
	// Known and omitted locks that the listing did not find may be gone.
	there := make(map[string]bool, len(found.Locks))
	for _, l := range found.Locks {
		there[l.Path] = true
	}
	for path, t := range s.tracks {
		if (t.lock != nil || s.omitted[path] != nil) && !there[path] {
			s.markDirty(t)
		}
	}
	s.listComplete = err == nil || errors.Is(err, ErrTooMany) || errors.Is(err, ErrUnreadable) || errors.Is(err, ErrInvalidNames)
	done := s.listComplete
	s.listComplete = done && !found.stopped
	if done {
		s.listConn, s.missedBefore = conn, missed
	}
	s.mu.Unlock()
	s.publish()
	return done
}

// isDelayed reports whether the last read of a lock took too long, so that a later one is due.
func (s *Watcher) isDelayed(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tracks[path]
	return t != nil && t.state == readDelayed
}

// readLater makes the watcher read a path that took too long in a listing, also if no lock can be
// there: when a read answers, the next listing may find the locks below it. The caller holds the
// mutex.
func (s *Watcher) readLater(path string) {
	if tooLong(path) {
		return
	}
	if !s.hasRoom(path) {
		s.missEvent()
		return
	}
	if t := s.trackOf(path); t.lock == nil && t.state == readCurrent {
		t.speed = slow
		s.delay(t)
	}
}

// show publishes snapshots until over is closed.
func (s *Watcher) show(over <-chan struct{}) {
	tick := time.NewTicker(max(s.opts.Interval, 100*time.Millisecond))
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

// mustList reports whether the watcher must list all locks again, after a listing on the
// connection conn.
func (s *Watcher) mustList(conn uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != conn && s.conn != 0 || !s.status.Watching || !s.listComplete || s.missedEvents()
}

// follow reads changed locks until the watcher must list all again, but at least for this
// duration.
func (s *Watcher) follow(ctx context.Context, conn uint64, least time.Duration) error {
	slowCtx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { s.readSlow(slowCtx) }) // ended when follow returns
	defer reading.Wait()
	defer cancel()
	walked := time.Now()
	asked := conn // the connection on which addWatch was called
	for {
		s.mu.Lock()
		current := s.conn
		s.mu.Unlock()
		if current != conn && current != 0 && asked != current {
			asked = current
			s.addWatch(ctx)
		}
		if s.mustList(conn) && time.Since(walked) >= least {
			return nil
		}
		wait := s.work(ctx)
		s.publish()
		if s.mustList(conn) { // also because of what work has read
			wait = min(wait, least-time.Since(walked))
		}
		if state := s.z.State(); state == zk.Closed || state == zk.AuthFailed {
			return errClosed
		}
		if err := s.sleep(ctx, quick, wait); err != nil {
			return err
		}
	}
}

// sleep waits for this duration, or until there is work for the goroutine that reads the znodes of
// this speed.
func (s *Watcher) sleep(ctx context.Context, of speed, d time.Duration) error {
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.wake[of]:
	case <-timer.C:
	}
	return nil
}
