package inspect

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// idle is how long there is nothing to do if nothing is scheduled; an event ends the wait.
const idle = time.Hour

// work reads changed locks and new znodes that are quick to read, as far as the budget allows, and
// returns how long there is nothing to do.
func (s *Watcher) work(ctx context.Context) time.Duration {
	for published := time.Now(); ctx.Err() == nil; {
		now := time.Now()
		if now.Sub(published) >= s.opts.Interval {
			s.publish()
			published = now
		}
		s.mu.Lock()
		offline := s.conn == 0
		suspects := s.dueSuspects(now)
		more := len(s.suspects) > 0
		s.mu.Unlock()
		if len(suspects) > 0 && !offline {
			s.resolveSuspects(ctx, suspects)
		}
		if wait := s.readNext(ctx, quick); wait > 0 {
			if more {
				wait = min(wait, s.opts.Interval)
			}
			return wait
		}
	}
	return 0
}

// readSlow reads what is slow to read until ctx ends.
func (s *Watcher) readSlow(ctx context.Context) {
	for s.sleep(ctx, slow, s.readNext(ctx, slow)) == nil {
	}
}

// readNext reads what is due first among what has this speed. It returns how long there is nothing
// to do, or 0 after a read.
func (s *Watcher) readNext(ctx context.Context, of speed) time.Duration {
	s.mu.Lock()
	now := time.Now()
	j, wait := s.schedule.first(of, now)
	if j == nil || s.conn == 0 {
		s.mu.Unlock()
		return idle
	}
	if wait = max(wait, s.budget.wait(of, now)); wait > 0 {
		s.mu.Unlock()
		return wait
	}
	was := j.state
	s.schedule.set(j, readStarted, time.Time{})
	t, n := s.tracks[j.path], s.newNodes[j.path]
	s.mu.Unlock()
	if j.node {
		s.checkNode(ctx, n)
	} else {
		s.refresh(ctx, t, was)
	}
	s.wakeUp() // the other goroutine: it publishes, or reads the same znode as a slow one
	return 0
}

// timeout returns the time for a read of a znode of this speed.
func (s *Watcher) timeout(of speed) time.Duration {
	if of == slow {
		return s.opts.List.Timeout
	}
	return min(s.opts.List.Timeout, maxQuickRead)
}

// refresh reads a lock that was scheduled in a state.
func (s *Watcher) refresh(ctx context.Context, t *track, was readState) {
	s.mu.Lock()
	at, since := t.path, s.event
	before := t.knownEntries()
	t.again = reread{}
	gate := path.Base(at) == "locks" && s.hasLeases(path.Dir(at)) || at != s.opts.Prefix && s.isKazooGate(at)
	unread := s.isUnread(at)
	s.mu.Unlock()
	if gate { // the entries belong to the semaphore
		s.update(at, &Lock{Path: at}, since)
		return
	}
	began := time.Now()
	l, reads, err := s.readChanged(ctx, t, before, unread)
	if errors.Is(err, zklock.ErrInvalidName) {
		l, err = &Lock{Path: at}, nil
	}
	s.mu.Lock()
	s.budget.spend(t.speed, reads)
	s.status.Reads += int64(reads)
	switch {
	case err == nil:
		t.speed = speedOf(time.Since(began))
	case errors.Is(err, zk.ErrNoAuth):
		s.omit(t, ErrUnreadable)
		s.settle(t, since)
	case isTooLarge(err):
		s.omit(t, ErrTooMany)
		s.settle(t, since)
	case s.isLate(ctx, err):
		s.postpone(t)
	default:
		t.again.all()
		s.schedule.set(&t.readJob, was, time.Now().Add(s.opts.Interval))
	}
	s.mu.Unlock()
	if err == nil {
		s.update(at, l, since)
		s.readParent(l)
	}
}

// isLate reports whether a read failed because it took too long. The caller holds the mutex.
func (s *Watcher) isLate(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && s.conn != 0
}

// postpone makes the watcher read a lock again that took too long to read: at once as a slow one,
// and then with delays. The caller holds the mutex.
func (s *Watcher) postpone(t *track) {
	t.again.all()
	if t.lock == nil || t.speed == slow {
		s.omit(t, errSlow)
	}
	if t.speed == slow {
		s.delay(t)
		return
	}
	t.speed = slow
	s.schedule.set(&t.readJob, readDue, time.Now())
}

// settle ends the schedule of a lock if a read that began after the event with number since
// includes all changes. It reports whether this is so. The caller holds the mutex.
func (s *Watcher) settle(t *track, since int64) bool {
	t.delay = 0
	if t.since <= since {
		t.again = reread{}
		s.schedule.set(&t.readJob, readCurrent, time.Time{})
		return true
	}
	if t.state != readDue {
		s.schedule.set(&t.readJob, readDue, time.Now().Add(s.opts.Interval))
	}
	return false
}

// isUnread reports whether the last read of the lock at a path failed, or of its znodes by a
// listing. The caller holds the mutex.
func (s *Watcher) isUnread(at string) bool {
	return s.omitted[at] != nil || s.unlisted[at] != nil ||
		s.unlisted[queue.LeasesPath(at)] != nil || s.unlisted[queue.GatePath(at)] != nil
}

// readChanged reads a lock within the limits of a listing. It first reads the numbers of its
// znodes if unread says that it may be too large. Of a path that can be no lock, it reads only
// whether it answers. It also returns the number of reads.
func (s *Watcher) readChanged(ctx context.Context, t *track, before []zklock.Entry,
	unread bool) (l *Lock, reads int, err error) {
	at := t.path
	ctx, cancel := context.WithTimeout(ctx, s.timeout(t.speed))
	defer cancel()
	if !mayBeLock(at) {
		return &Lock{Path: at}, 2, s.checkChildren(ctx, at)
	}
	if unread {
		reads = sizeReads
		if err := s.checkSize(ctx, at, false); err != nil {
			return nil, reads, err
		}
	}
	reading := queue.NewReading(s.maxChildren, maxReadBytes)
	ctx = reading.Context(ctx)
	l, err = s.readWith(ctx, s.own, at, before)
	if s.layout != (zklock.Layout{}) && err == nil && len(l.Contenders()) == 0 {
		l, err = s.readWith(ctx, s.plain, at, before)
	}
	sent := max(1, reading.Sent)
	if err == nil {
		sent = max(sent, cost(l, before))
	}
	return l, reads + sent, err
}

// checkChildren reports whether a listing may be able to list the children of a znode.
func (s *Watcher) checkChildren(ctx context.Context, at string) error {
	stat, _, err := s.z.Exists(ctx, at)
	if err == nil && int(stat.NumChildren) > s.maxChildren {
		err = ErrTooManyChildren
	}
	if err == nil {
		_, _, err = s.z.Children(ctx, at)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// maxDelay is the longest time until the watcher reads a lock again that took too long to read.
const maxDelay = 10 * time.Minute

// delay makes the watcher read a lock again later that took too long to read: after the time that
// the read may take, and twice as late after each further one. Further changes do not make it read
// the lock earlier. The caller holds the mutex.
func (s *Watcher) delay(t *track) {
	t.delay = min(max(2*t.delay, s.opts.List.Timeout), maxDelay)
	s.schedule.set(&t.readJob, readDelayed, time.Now().Add(t.delay))
}

// readParent makes the watcher read the parent of a new znode that is no node lock, but the entry
// of a lock in a custom layout.
func (s *Watcher) readParent(l *Lock) {
	parent := path.Dir(l.Path)
	if len(l.Entries) != 1 || l.Entries[0].Node != l.Path || l.Path == s.opts.Prefix || !mayBeLock(parent) || !isApart(l.Entries[0].Entry) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasRoom(parent) {
		s.missEvent()
		return
	}
	s.markDirty(s.trackOf(parent))
}

// omit removes a lock that the client cannot read, for this reason, from the list, as a listing
// omits it. Its former entries may have left: the servers report no changes of what the client
// may not read. The caller holds the mutex.
func (s *Watcher) omit(t *track, why error) {
	s.replace(t, nil)
	s.setBytes(t)
	s.omitted[t.path], s.unpublished = why, true
	delete(s.relisted, t.path)
}

// knownEntries returns the entries that need not be read again.
func (t *track) knownEntries() []zklock.Entry {
	if t.lock == nil {
		return nil
	}
	known := make([]zklock.Entry, 0, len(t.lock.Entries))
	for _, e := range t.lock.Entries {
		if !t.again.has(e.Node) {
			known = append(known, e.Entry)
		}
	}
	return known
}

// knownEntries returns the entries that a listing need not read again. It omits holders,
// because the watcher may have missed changes of their data, and clients write release
// requests there.
func (s *Watcher) knownEntries(path string) []zklock.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tracks[path]
	if t == nil {
		return nil
	}
	return slices.DeleteFunc(t.knownEntries(), func(e zklock.Entry) bool { return e.Holder })
}

// cost returns how many reads a lock took.
func cost(l *Lock, before []zklock.Entry) int {
	reads := 1
	if l.Kind == KindSemaphore {
		reads = 7
	} else if len(l.Entries) == 0 {
		reads = 2
	}
	nodes := make(map[string]bool, len(before))
	for _, e := range before {
		nodes[e.Node] = true
	}
	for _, e := range l.Entries {
		if !nodes[e.Node] {
			reads++
		}
	}
	return reads
}

// checkNode finds out whether a new znode is a node lock. If the read does not answer, the watcher
// reads the znode as it reads a lock, until a read answers.
func (s *Watcher) checkNode(ctx context.Context, n *newNode) {
	readCtx, cancel := context.WithTimeout(ctx, s.timeout(quick))
	defer cancel()
	stat, there, err := s.z.Exists(readCtx, n.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.spend(quick, 1)
	s.status.Reads++
	if s.newNodes[n.path] != n { // it was deleted, or is a permit
		return
	}
	delete(s.newNodes, n.path)
	if err == nil && (!there || stat.EphemeralOwner == 0) {
		return
	}
	if !s.hasRoom(n.path) {
		s.missEvent()
		return
	}
	t := s.trackOf(n.path)
	if err == nil {
		entry := queue.Entry{Name: path.Base(n.path)}
		t.line.add(member{Entry: entry, arrived: n.created, event: s.event}, false)
		s.setBytes(t)
	}
	t.since = s.event
	switch {
	case t.state != readCurrent:
	case s.isLate(ctx, err):
		s.postpone(t)
	default: // before the znodes that were created after it
		s.schedule.set(&t.readJob, readDue, n.created)
	}
}

// update stores a lock that was read after the event with number since.
func (s *Watcher) update(path string, l *Lock, since int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path != s.opts.Prefix && s.isKazooGate(path) || s.isKazooPermit(path) {
		l = &Lock{Path: path} // its entries are those of the semaphore
	}
	s.hasRoom(path) // drops others if there are too many
	large := func() bool {
		rest := s.bytes
		if t := s.tracks[path]; t != nil {
			rest -= t.bytes
		}
		return len(l.Contenders()) > 0 && rest+l.bytes() > maxTrackBytes
	}
	if large() {
		s.evict(time.Now())
	}
	t := s.trackOf(path)
	if s.settle(t, since) {
		if l.Kind == KindSemaphore && !l.isKazooSemaphore() && !t.semaphore { // its former track was dropped
			t.semaphore = true
			s.moveGate(t.path, queue.GatePath(t.path))
		}
	}
	if large() {
		t.line = lockQueue{}
		s.omit(t, ErrTooMany)
		return
	}
	if s.omitted[path] != nil {
		delete(s.omitted, path)
		s.unpublished = true
	}
	if s.unlisted[path] != nil && (!s.relisted[path] || !mayBeLock(path)) {
		s.relisted[path] = true
		s.listComplete = false // the next listing may find all locks
	}
	now := time.Now()
	t.line.reconcile(l, s.names(), since)
	t.line.updateHolders(now, l.Kind == KindSemaphore, func(m *member) { s.countGrant(t, m, now) })
	if len(l.Contenders()) == 0 {
		l = nil
	}
	if l != nil {
		for i := range l.Entries {
			if e := &l.Entries[i]; e.Holder {
				m, _ := t.line.find(s.queueEntry(*e))
				e.Granted = m.granted
			}
		}
		l.PastHolds = t.hold.times()
	}
	if !s.status.Watching {
		s.readNewHolders(t, l)
	}
	before := t.lock
	s.replace(t, l)
	gate := path + kazooGate
	switch {
	case before.hasKazooGate() == l.hasKazooGate():
	case l.hasKazooGate():
		s.moveGate(path, gate)
	case s.tracks[gate] != nil || l != nil && s.hasRoom(gate): // the gate is a lock now
		s.markDirty(s.trackOf(gate))
	}
	if l.isKazooSemaphore() {
		for _, e := range l.Contenders() {
			s.dropNode(e.Node)
			if permit := s.tracks[e.Node]; permit != nil && permit.lock != nil { // as a node lock
				s.markDirty(permit)
			}
		}
	}
	s.logRead(t, before, now)
	s.setBytes(t)
}

// readNewHolders makes the watcher read again the entries of a lock that waited when it was last
// read, and hold now: without events, it does not know whether their data changed. The caller holds
// the mutex.
func (s *Watcher) readNewHolders(t *track, l *Lock) {
	if l == nil || t.lock == nil {
		return
	}
	for _, e := range l.Holders() {
		if i, known := t.index().byNode[e.Node]; known && !t.lock.Entries[i].Holder {
			s.readAgain(t, e.Node)
			s.markDirty(t)
		}
	}
}

// replace stores a lock in its track. The caller holds the mutex.
func (s *Watcher) replace(t *track, l *Lock) {
	if t.lock == nil && l == nil {
		return
	}
	t.lock, t.entries, t.lockBytes = l, entryIndex{}, 0
	if l != nil {
		t.lockBytes = l.bytes()
	}
	t.changed = true
	s.changedPaths = append(s.changedPaths, t.path)
	s.unpublished = true
}

// publish makes a new snapshot if something has changed.
func (s *Watcher) publish() {
	s.mu.Lock()
	if !s.unpublished {
		s.mu.Unlock()
		return
	}
	s.unpublished = false
	s.status.Pending = s.schedule.pending
	if s.status.Connected {
		s.status.LastContact = time.Now()
	}
	next := &Snapshot{Version: s.snapshot.Version + 1, At: time.Now(), Locks: s.snapshot.Locks, Status: s.status, unlisted: s.unlisted, partial: s.partial || !s.status.Listed}
	if len(s.omitted) > 0 {
		next.omitted, next.Status.Complete = maps.Clone(s.omitted), false
		next.Status.Reason = strings.TrimPrefix(next.Status.Reason+"; "+s.omittedReason(), "; ")
	}
	if s.status.Listed && s.conn != 0 && s.conn != s.listConn {
		next.partial, next.Status.Complete, next.Status.Reason = true, false, "the connection was lost for some time; a new listing will start soon"
	}
	if s.missedEvents() {
		next.partial, next.Status.Complete, next.Status.Reason = true, false, "too many new znodes to check; a new listing will start soon, or use a longer prefix"
	}
	if len(s.changedPaths) > 0 {
		next.Locks = s.merged(next.Version)
	}
	s.snapshot = next
	changed := s.changed
	s.changed = make(chan struct{})
	s.mu.Unlock()
	close(changed)
}

// merged returns the snapshot's locks with the changed ones. The caller holds the mutex.
func (s *Watcher) merged(version uint64) []*Lock {
	locks := make([]*Lock, 0, len(s.snapshot.Locks)+len(s.changedPaths))
	for _, l := range s.snapshot.Locks {
		if t := s.tracks[l.Path]; t == nil || !t.changed {
			locks = append(locks, l)
		}
	}
	for _, path := range s.changedPaths {
		t := s.tracks[path]
		if t == nil || !t.changed {
			continue // a duplicate
		}
		t.changed = false
		if t.lock != nil {
			t.lock.Version = version
			locks = append(locks, t.lock)
			continue
		}
		s.removals = append(s.removals, removal{path, version})
	}
	s.removals = s.removals[max(0, len(s.removals)-maxRemovals):]
	s.changedPaths = s.changedPaths[:0]
	slices.SortFunc(locks, func(a, b *Lock) int { return byPath(a, b.Path) })
	return locks
}
