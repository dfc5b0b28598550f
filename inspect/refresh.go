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

// work reads changed locks and new znodes, as far as the budget allows, and returns how
// long there is nothing to do.
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
		at, node, wait := s.nextRead(now)
		s.mu.Unlock()
		if len(suspects) > 0 && !offline {
			s.resolveSuspects(ctx, suspects)
		}
		if offline || at == "" && node == "" {
			return s.idleTime()
		}
		if wait = max(wait, s.budget.wait(now)); wait > 0 {
			return wait
		}
		if s.nodeNext = at != ""; s.nodeNext {
			s.refresh(ctx, at)
		} else {
			s.checkNode(ctx, node)
		}
	}
	return 0
}

// idleTime returns how long there is nothing to do if no lock is outdated.
func (s *Watcher) idleTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.suspects) > 0 {
		return s.opts.Interval
	}
	idle := time.Hour // an event ends the wait
	for _, path := range s.delayed {
		if t := s.tracks[path]; t != nil {
			idle = min(idle, max(time.Until(t.dirty), time.Until(s.slowNext)))
		}
	}
	return idle
}

// nextRead returns the lock to read next, or the new znode to check, and how long to collect
// further changes of the lock before. Delayed locks come last. While locks are due, every other
// read is of a new znode that has waited for the Interval. The caller holds the mutex.
func (s *Watcher) nextRead(now time.Time) (at, node string, wait time.Duration) {
	at, wait = s.nextDirty(now)
	due := at != "" && wait <= 0
	if !due {
		node = s.nextNode(now)
	} else if s.nodeNext {
		node = s.nextNode(now.Add(-s.opts.Interval))
	}
	if node != "" {
		return "", node, 0
	}
	if !due {
		if slow := s.nextDelayed(now); slow != "" {
			return slow, "", 0
		}
	}
	return at, "", wait
}

// nextDirty returns the next lock in dirty, and how long to collect further changes before. The
// caller holds the mutex.
func (s *Watcher) nextDirty(now time.Time) (path string, wait time.Duration) {
	for len(s.dirty) > 0 {
		path = s.dirty[0]
		if t := s.tracks[path]; t != nil && !t.dirty.IsZero() {
			return path, s.opts.Interval - now.Sub(t.dirty)
		}
		s.dirty = s.dirty[1:]
	}
	return "", 0
}

// nextDelayed returns the lock in delayed that is due first, or an empty path if none is due. The
// caller holds the mutex.
func (s *Watcher) nextDelayed(now time.Time) (path string) {
	if now.Before(s.slowNext) {
		return ""
	}
	first := now
	s.delayed = slices.DeleteFunc(s.delayed, func(at string) bool {
		t := s.tracks[at]
		if t == nil || t.dirty.IsZero() {
			return true
		}
		if !t.dirty.After(first) {
			path, first = at, t.dirty
		}
		return false
	})
	return path
}

// maxSkipped limits the new znodes that nextNode skips.
const maxSkipped = 100

// nextNode returns a new znode to check that was created by a time. It skips those in outdated
// locks: the read of the lock tells what they are, unless it is delayed. The caller holds the
// mutex.
func (s *Watcher) nextNode(by time.Time) string {
	skipped := 0
	for node, created := range s.newNodes {
		t := s.tracks[path.Dir(node)]
		read := t != nil && !t.dirty.IsZero() && t.delay == 0
		if !read && !created.After(by) {
			return node
		}
		if skipped++; skipped == maxSkipped {
			break
		}
	}
	return ""
}

// refresh reads a lock that has changed.
func (s *Watcher) refresh(ctx context.Context, at string) {
	s.mu.Lock()
	t := s.tracks[at]
	t.dirty = time.Time{}
	if len(s.dirty) > 0 && s.dirty[0] == at {
		s.dirty = s.dirty[1:]
	} else {
		s.delayed = slices.DeleteFunc(s.delayed, func(path string) bool { return path == at })
	}
	delayed := t.delay > 0
	since := s.event
	before := t.knownEntries()
	t.data = nil
	gate := path.Base(at) == "locks" && s.hasLeases(path.Dir(at)) || at != s.opts.Prefix && s.isKazooGate(at)
	unread := s.isUnread(at)
	s.mu.Unlock()
	if gate { // the entries belong to the semaphore
		s.update(at, &Lock{Path: at}, since)
		return
	}
	began := time.Now()
	l, reads, err := s.readChanged(ctx, at, before, unread)
	s.budget.spend(reads)
	s.mu.Lock()
	s.status.Reads += int64(reads)
	slow := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && s.conn != 0
	if slow || delayed { // leave other reads half of the time
		now := time.Now()
		s.slowNext = now.Add(now.Sub(began))
	}
	s.mu.Unlock()
	switch {
	case err == nil:
		s.update(at, l, since)
		s.readParent(l)
	case errors.Is(err, zklock.ErrInvalidName):
		s.update(at, &Lock{Path: at}, since)
	case errors.Is(err, zk.ErrNoAuth):
		s.hide(t, ErrUnreadable)
	case isTooLarge(err):
		s.hide(t, ErrTooMany)
	case slow:
		s.hide(t, errSlow)
		s.mu.Lock()
		s.delay(t)
		s.mu.Unlock()
	default:
		s.mu.Lock()
		s.markDirty(t)
		s.mu.Unlock()
	}
}

// isUnread reports whether the last read of the lock at a path failed, or of its znodes by a
// listing. The caller holds the mutex.
func (s *Watcher) isUnread(at string) bool {
	return s.omitted[at] != nil || s.unlisted[at] != nil ||
		s.unlisted[queue.LeasesPath(at)] != nil || s.unlisted[queue.GatePath(at)] != nil
}

// readChanged reads a lock within the limits of a listing. It first reads the numbers of its
// znodes if unread says that it may be too large. It also returns the number of reads.
func (s *Watcher) readChanged(ctx context.Context, at string, before []zklock.Entry,
	unread bool) (l *Lock, reads int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.List.Timeout)
	defer cancel()
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

// maxDelay is the longest time until the watcher reads a lock again that took too long to read.
const maxDelay = 10 * time.Minute

// delay makes the watcher read a lock again later that took too long to read: after the time that
// the read may take, and twice as late after each further one. An event during the read may have
// made the lock outdated again: it must not stay in dirty, where later locks would wait for it.
// The caller holds the mutex.
func (s *Watcher) delay(t *track) {
	t.delay = min(max(2*t.delay, s.opts.List.Timeout), maxDelay)
	t.since, t.dirty = s.event, time.Now().Add(t.delay)
	is := func(path string) bool { return path == t.path }
	s.dirty = slices.DeleteFunc(s.dirty, is)
	s.delayed = append(slices.DeleteFunc(s.delayed, is), t.path)
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

// hide removes a lock that the client cannot read, for this reason, from the list, as a listing
// omits it. Its former entries may have left: the servers report no changes of what the client
// may not read.
func (s *Watcher) hide(t *track, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.omit(t, why)
}

// omit is hide for a caller that holds the mutex.
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
		if !t.data[e.Node] {
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

// checkNode finds out whether a new znode is a node lock.
func (s *Watcher) checkNode(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.List.Timeout)
	defer cancel()
	stat, there, err := s.z.Exists(ctx, node)
	s.budget.spend(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Reads++
	came, wanted := s.newNodes[node]
	delete(s.newNodes, node)
	if parent := s.tracks[path.Dir(node)]; parent != nil && parent.lock.isKazooSemaphore() {
		if _, permit := parent.index().byNode[node]; permit {
			return
		}
	}
	if err == nil && there && wanted && stat.EphemeralOwner != 0 {
		if !s.hasRoom(node) {
			s.missEvent()
			return
		}
		t := s.trackOf(node)
		t.line.add(member{Entry: queue.Entry{Name: path.Base(node)}, arrived: came, event: s.event}, false)
		s.setBytes(t)
		s.markDirty(t)
	}
}

// update stores a lock that was read after the event with number since.
func (s *Watcher) update(path string, l *Lock, since int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path != s.opts.Prefix && s.isKazooGate(path) {
		l = &Lock{Path: path} // its entries are in the semaphore's queue
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
	t.delay = 0
	if t.since <= since { // this read includes the changes
		t.dirty = time.Time{}
		s.delayed = slices.DeleteFunc(s.delayed, func(at string) bool { return at == path })
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
	if s.unlisted[path] != nil && !s.relisted[path] {
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
	before := t.lock
	s.replace(t, l)
	switch gate := s.tracks[path+kazooGate]; {
	case gate == nil || before.isKazooSemaphore() == l.isKazooSemaphore():
	case l.isKazooSemaphore():
		s.moveGate(path, path+kazooGate)
	default:
		s.markDirty(gate)
	}
	s.logRead(t, before, now)
	s.setBytes(t)
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
	s.dirty = slices.DeleteFunc(s.dirty, func(path string) bool { t := s.tracks[path]; return t == nil || t.dirty.IsZero() })
	s.status.Pending = len(s.dirty)
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
