package inspect

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// change is an event that was not processed yet.
type change struct {
	typ  zk.EventType
	path string
	zxid int64 // 0 or less if unknown
}

// wakeUp tells the goroutines that read that there may be work.
func (s *Watcher) wakeUp() {
	for _, wake := range s.wake {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// onState handles a change of the connection.
func (s *Watcher) onState(c zk.StateChange) {
	s.mu.Lock()
	s.conn = 0
	s.status.Connected = c.State == zk.Connected || c.State == zk.ConnectedReadOnly
	if s.status.Connected {
		s.conn = c.Conn
		s.markAllDirty()
	}
	s.status.LastContact = time.Now()
	if c.State == zk.Expired {
		s.status.Watching = false // the watch ended with the session
	}
	s.unpublished = true
	s.mu.Unlock()
	s.wakeUp()
}

// markAllDirty marks all known locks as outdated, because changes may have been missed, also of
// the data of their entries.
// Only a listing finds locks that were created in that time. The caller holds the mutex.
func (s *Watcher) markAllDirty() {
	s.event++
	for _, t := range s.tracks {
		if t.lock != nil || t.state == readStarted {
			t.again.all()
			s.markDirty(t)
		}
	}
}

// onEvent stores an event until all events of its transaction have arrived. It ignores those of
// other watches of the client.
func (s *Watcher) onEvent(e zk.Event) {
	prefix := s.opts.Prefix
	switch e.Type {
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged:
		if below, ok := strings.CutPrefix(e.Path, strings.TrimSuffix(prefix, "/")); !ok || below != "" && below[0] != '/' {
			return
		}
	case zk.EventPersistentWatchRemoved: // by the program, or the new server is too old for it
		if e.Path != prefix {
			return
		}
		s.mu.Lock()
		s.status.Watching, s.unpublished = false, true
		s.mu.Unlock()
		s.wakeUp()
		return
	default:
		return
	}
	if queue.IsMark(path.Base(e.Path)) {
		return // it existed only within its transaction
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch = append(s.batch, change{e.Type, e.Path, e.Zxid})
}

// onDrained processes the events, one transaction at a time, because no client held a lock
// between two changes of one transaction. Servers before ZooKeeper 3.9 do not tell the
// transaction. Then each change counts as one.
func (s *Watcher) onDrained() {
	s.mu.Lock()
	batch := s.batch
	s.batch = nil
	now := time.Now()
	for i := 0; i < len(batch); {
		n := i + 1
		for n < len(batch) && batch[i].zxid > 0 && batch[n].zxid == batch[i].zxid {
			n++
		}
		s.transaction(batch[i:n], now)
		i = n
	}
	s.status.Events += int64(len(batch))
	if len(batch) > 0 {
		s.status.LastContact = now
	}
	work := s.schedule.pending > 0 || len(s.newNodes) > 0
	s.mu.Unlock()
	if work {
		s.wakeUp()
	}
}

// transaction processes the events of one transaction. The caller holds the mutex.
func (s *Watcher) transaction(changes []change, now time.Time) {
	var ended []ending
	touched := map[string]*track{}
	for _, c := range changes {
		s.event++
		if c.typ == zk.EventNodeCreated {
			s.noteChild(path.Dir(c.path))
		}
		about := s.roleOf(c.path)
		if tooLong(about.lock) {
			continue
		}
		switch about.role {
		case roleNone:
			s.otherEvent(c)
			continue
		case roleRecord:
			s.recordEvent(c)
			continue
		}
		if !s.hasRoom(about.lock) {
			s.missEvent()
			continue
		}
		t := s.trackOf(about.lock)
		if about.role == roleStray {
			s.markDirty(t)
			s.otherEvent(c) // it may also be a node lock; the read of the lock comes first
			continue
		}
		touched[about.lock] = t
		if about.role == roleLeases {
			s.leasesEvent(t, c.typ)
		}
		if e, ok := s.entryEvent(t, about, c, now); ok {
			ended = append(ended, e)
		}
		if about.role == roleGate && c.typ == zk.EventNodeDeleted {
			// A client holds its permits before it leaves the gate, and may release them in
			// the same transaction.
			s.updateHolders(about.lock, t, now)
		}
		s.markDirty(t)
		if semaphore := s.kazooSemaphore(about.lock); semaphore != nil {
			s.markDirty(semaphore) // the entry may be its waiter, too
		}
	}
	for path, t := range touched {
		s.updateHolders(path, t, now)
		s.setBytes(t)
	}
	s.countLosses(ended, changes[0].zxid, now)
}

// noteChild records that a znode has got a child. If the znode is a stray that had none when the
// watcher read it, it can be the znode of another lock. The next read of its lock reads it again.
func (s *Watcher) noteChild(node string) {
	t := s.tracks[path.Dir(node)]
	if t == nil {
		return
	}
	if i, ok := t.index().byNode[node]; ok && t.lock.Entries[i].Mode == zklock.Stray && !t.lock.Entries[i].Parent {
		s.readAgain(t, node)
		s.setBytes(t)
		s.markDirty(t)
	}
}

// updateHolders computes the holders of a lock, and counts the new ones.
func (s *Watcher) updateHolders(lock string, t *track, now time.Time) {
	t.line.updateHolders(now, s.isSemaphore(lock), func(m *member) { s.countGrant(t, m, now) })
}

// entryEvent processes the change of one entry. It returns a hold that ended.
func (s *Watcher) entryEvent(t *track, about nodeRole, c change, now time.Time) (ending, bool) {
	name := path.Base(c.path)
	switch {
	case about.role == roleLeases:
	case c.typ == zk.EventNodeDataChanged:
		s.readAgain(t, c.path)
	case c.typ == zk.EventNodeCreated:
		if _, known := t.index().byNode[c.path]; known { // another client replaced the entry
			s.readAgain(t, c.path)
		}
		if s.bytes > maxTrackBytes {
			break // the next read of the lock finds it
		}
		m := member{Entry: about.entry, arrived: now, event: s.event}
		if about.role == roleLease {
			head := t.line.firstAtGate()
			m.arrived, m.gate = head.arrived, head.Entry
		}
		t.line.add(m, about.role == roleLease)
	case c.typ == zk.EventNodeDeleted:
		t.again.remove(c.path)
		m, found := t.line.remove(about.entry, s.event, s.bytes <= maxTrackBytes)
		if !found {
			break
		}
		e := ending{track: t, path: about.lock, member: m, node: c.path}
		twin := false
		e.session, e.token, twin = t.identity(c.path)
		if m.holder && !m.twin {
			t.session, t.token = e.session, e.token
			held := time.Duration(-1)
			if !m.granted.IsZero() {
				held = now.Sub(m.granted)
			}
			t.released(now, held)
			s.all.released(now, held)
			e.event = s.logEvent(t, Released, name, now, held)
			return e, true
		}
		if !m.holder && !twin && !s.isSemaphore(about.lock) {
			t.canceled++
			s.all.canceled++
		}
	}
	return ending{}, false
}

// readAgain makes the next read of the lock read this znode. The caller holds the mutex.
func (s *Watcher) readAgain(t *track, node string) {
	if t.again.add(node); s.bytes > maxTrackBytes {
		t.again.all()
	}
}

// reread tells which entries of a lock to read again although they are known: their data changed,
// or another client replaced them.
type reread struct {
	nodes map[string]bool
	every bool // all entries: more changed than nodes may have, or changes may have been missed
	bytes int  // estimated memory of nodes
}

// maxRereadBytes limits the memory of the nodes in a reread. A client can change data much faster
// than the watcher reads.
const maxRereadBytes = 16 << 10

func (r *reread) all() { *r = reread{every: true} }

func (r *reread) has(node string) bool { return r.every || r.nodes[node] }

func (r *reread) add(node string) {
	if r.has(node) {
		return
	}
	if r.bytes += memberBytes + len(node); r.bytes > maxRereadBytes {
		r.all()
		return
	}
	if r.nodes == nil {
		r.nodes = map[string]bool{}
	}
	r.nodes[node] = true
}

func (r *reread) remove(node string) {
	if r.nodes[node] {
		delete(r.nodes, node)
		r.bytes -= memberBytes + len(node)
	}
}

// identity returns the session and the token of one of the lock's znodes, and whether its
// acquire has another entry, as in the mixed layout.
func (t *track) identity(node string) (session, token int64, twin bool) {
	i, found := t.index().byNode[node]
	if !found {
		return 0, 0, false
	}
	all := t.lock.Entries
	e := all[i]
	twin = i > 0 && SameAcquire(all[i-1].Entry, e.Entry) || i+1 < len(all) && SameAcquire(e.Entry, all[i+1].Entry)
	return e.Session, e.Token, twin
}

// entryIndex finds the entries of a lock, whose number has no low bound.
type entryIndex struct {
	byNode, byName map[string]int
}

// index returns the index of the lock as it was last read.
func (t *track) index() entryIndex {
	if t.entries.byNode == nil && t.lock != nil {
		t.entries = indexOf(t.lock)
	}
	return t.entries
}

// indexOf returns the index of a lock, which may be nil. Of several entries with one name it
// has the first.
func indexOf(l *Lock) entryIndex {
	index := entryIndex{map[string]int{}, map[string]int{}}
	if l == nil {
		return index
	}
	for i, e := range slices.Backward(l.Entries) {
		index.byNode[e.Node], index.byName[e.Name] = i, i
	}
	return index
}

// countGrant counts a grant. In the mixed layout, an acquire has two entries. The second
// one becomes the first of the queue for a short time after the other was deleted, and does
// not count.
func (s *Watcher) countGrant(t *track, m *member, now time.Time) {
	if t.session != 0 {
		e := t.entryNamed(m.Name)
		m.twin = e != nil && e.Session == t.session && e.Token == t.token
		if m.twin {
			return
		}
	}
	wait := time.Duration(-1)
	if !m.arrived.IsZero() {
		wait = now.Sub(m.arrived)
	}
	t.granted(now, wait)
	s.all.granted(now, wait)
	m.logged = s.logEvent(t, Acquired, m.Name, now, wait)
}

// otherEvent processes the change of a znode that belongs to no known lock. A new znode may
// be a node lock if it is ephemeral.
func (s *Watcher) otherEvent(c change) {
	switch {
	case c.typ == zk.EventNodeDeleted:
		s.dropNode(c.path)
	case c.typ != zk.EventNodeCreated || s.layout.InParent || tooLong(c.path):
	case len(s.newNodes) >= maxNewNodes:
		s.missEvent()
	default:
		s.dropNode(c.path)
		now := time.Now()
		n := &newNode{readJob{path: c.path, node: true}, now}
		s.newNodes[c.path] = n
		s.schedule.set(&n.readJob, readDue, now.Add(s.opts.Interval))
	}
}

// newNode is a znode that was created and may be a node lock.
type newNode struct {
	readJob
	created time.Time
}

// dropNode removes a znode from newNodes. The caller holds the mutex.
func (s *Watcher) dropNode(path string) {
	if n := s.newNodes[path]; n != nil {
		s.schedule.set(&n.readJob, readCurrent, time.Time{})
		delete(s.newNodes, path)
	}
}

// recordEvent processes the change of a lock-delay record.
func (s *Watcher) recordEvent(c change) {
	switch c.typ {
	case zk.EventNodeCreated:
		if len(s.records) < maxTracks {
			s.records[c.path] = true
		}
	case zk.EventNodeDeleted:
		delete(s.records, c.path)
	}
}

// leasesEvent processes the change of the parent of a semaphore's permits.
func (s *Watcher) leasesEvent(t *track, typ zk.EventType) {
	t.semaphore = typ != zk.EventNodeDeleted
	if t.semaphore {
		s.markDirty(t) // before the gate, whose entries are then shown as its waiters
		s.moveGate(t.path, queue.GatePath(t.path))
	}
}

// moveGate turns what was counted as a lock into the gate of a semaphore. Semaphores have a
// gate before they have permits.
func (s *Watcher) moveGate(lock, gate string) {
	t := s.tracks[gate]
	if t == nil {
		return
	}
	s.markDirty(t)
	semaphore := s.trackOf(lock)
	for _, m := range t.line.queue {
		if m.holder && !m.granted.IsZero() && !m.twin {
			t.retract(*m)
			m.logged.retract()
			s.all.retract(*m)
		}
		m.holder, m.granted = false, time.Time{}
		semaphore.line.add(*m, false)
	}
	t.line = lockQueue{removed: t.line.removed}
	s.setBytes(semaphore)
}

// noteSemaphore notes a semaphore that a listing found.
func (s *Watcher) noteSemaphore(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !mayBeLock(path) || tooLong(path):
	case !s.hasRoom(path):
		s.missEvent()
	default:
		s.trackOf(path).semaphore = true
	}
}

// markDirty marks a lock as outdated. The watcher reads it after it has collected further changes.
// The caller holds the mutex.
func (s *Watcher) markDirty(t *track) {
	t.since = s.event
	if t.state == readCurrent || t.state == readDelayed && !s.isUnread(t.path) {
		s.schedule.set(&t.readJob, readDue, time.Now().Add(s.opts.Interval))
		if t.lock == nil && t.speed == slow {
			s.omit(t, errSlow) // until it is read, it may be held
		}
	}
}

// hasRoom reports whether the watcher has a track of the lock, or may add one. The caller
// holds the mutex.
func (s *Watcher) hasRoom(path string) bool {
	full := func() bool { return len(s.tracks) >= maxTracks || s.bytes > maxTrackBytes }
	if s.pastBytes > maxPastBytes*9/10 || s.tracks[path] == nil && full() {
		s.evict(time.Now())
	}
	return s.tracks[path] != nil || !full()
}

// trackOf returns the track of a lock. The caller holds the mutex.
func (s *Watcher) trackOf(path string) *track {
	t := s.tracks[path]
	if t == nil {
		path = strings.Clone(path) // it may be part of a longer string
		t = &track{readJob: readJob{path: path}, recorder: recorder{step: stepOfOne}}
		s.tracks[t.path] = t
		s.setBytes(t)
	}
	return t
}

// evictInterval is the minimum time between two searches for tracks to drop. A search takes
// milliseconds, and a client can cause events much faster.
const evictInterval = time.Second

// evict drops some of the histories of locks without holders. The caller holds the mutex.
func (s *Watcher) evict(now time.Time) {
	if now.Sub(s.evicted) < evictInterval {
		return
	}
	s.evicted = now
	left := maxTracks / 10
	for path, t := range s.tracks {
		if t.lock == nil && t.state == readCurrent && !t.changed && s.omitted[path] == nil {
			s.bytes -= t.bytes
			s.pastBytes -= t.pastBytes
			delete(s.tracks, path)
			if left--; left == 0 {
				return
			}
		}
	}
}

// missEvent notes that there was no room for a new znode. The caller holds the mutex.
func (s *Watcher) missEvent() {
	s.missed++
	s.unpublished = true
}

// missedEvents reports whether there was no room for new znodes since the begin of the last
// listing. The caller holds the mutex.
func (s *Watcher) missedEvents() bool { return s.missed != s.missedBefore }
