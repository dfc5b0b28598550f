package survey

import (
	"path"
	"slices"
	"time"

	"github.com/zklock/zklock/zk"
)

// change is an event that was not worked off yet.
type change struct {
	typ  zk.EventType
	path string
	zxid int64 // not above 0 if it is not known
}

// rouse lets Run look what there is to do.
func (s *Survey) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// onState follows the connection.
func (s *Survey) onState(c zk.StateChange) {
	s.mu.Lock()
	s.conn = 0
	s.status.Connected = c.State == zk.Connected || c.State == zk.ConnectedReadOnly
	if s.status.Connected {
		s.conn = c.Conn
		s.distrust()
	}
	s.status.Heard = time.Now()
	if c.State == zk.Expired {
		s.status.Live = false // the watch went with the session
	}
	s.stale = true
	s.mu.Unlock()
	s.rouse()
}

// distrust lets all locks that are known be read again, as after a time in which
// changes were missed. What came in that time only a walk finds, which may have to
// wait. The mutex is held.
func (s *Survey) distrust() {
	s.event++
	for path, t := range s.tracks {
		if t.lock != nil {
			s.soil(path, t)
		}
	}
}

// onEvent keeps an event until all that came with it is there.
func (s *Survey) onEvent(e zk.Event) {
	switch e.Type {
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged:
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch = append(s.batch, change{e.Type, e.Path, e.Zxid})
}

// onDrained works the events off, one transaction after another: who holds between two
// changes of one transaction was never so. Where the servers do not tell them apart,
// as before ZooKeeper 3.9, each change counts as one.
func (s *Survey) onDrained() {
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
		s.status.Heard = now
	}
	work := len(s.dirty) > 0 || len(s.curious) > 0
	s.mu.Unlock()
	if work {
		s.rouse()
	}
}

// transaction works off the events of one. The mutex is held.
func (s *Survey) transaction(changes []change, now time.Time) {
	var ended []ending
	touched := map[string]*track{}
	for _, c := range changes {
		s.event++
		about := s.about(c.path)
		switch about.part {
		case partOther:
			s.other(c)
			continue
		case partRecord:
			s.record(c)
			continue
		case partStray: // which may be a lock of its own as well
			s.other(c)
			s.soil(about.lock, s.track(about.lock))
			continue
		}
		t := s.track(about.lock)
		touched[about.lock] = t
		if about.part == partLeases {
			s.semaphore(about.lock, c.typ)
		}
		if e, ok := s.entry(t, about, c, now); ok {
			ended = append(ended, e)
		}
		s.soil(about.lock, t)
	}
	for path, t := range touched {
		t.line.settle(now, s.semaphores[path], func(m *member) { s.grant(t, m, now) })
	}
	s.losses(ended, changes[0].zxid > 0, now)
}

// entry works off the change of one entry. It returns a hold that ended.
func (s *Survey) entry(t *track, about about, c change, now time.Time) (ending, bool) {
	name := path.Base(c.path)
	switch {
	case about.part == partLeases:
	case c.typ == zk.EventNodeDataChanged:
		if t.data == nil {
			t.data = map[string]bool{}
		}
		t.data[c.path] = true
	case c.typ == zk.EventNodeCreated:
		m := member{Entry: about.entry, came: now, event: s.event}
		if about.part == partLease {
			head := t.line.atGate()
			m.came, m.gate = head.came, head.Name
		}
		t.line.add(m, about.part == partLease)
	case c.typ == zk.EventNodeDeleted:
		m, found := t.line.remove(name, s.event)
		if !found {
			break
		}
		e := ending{track: t, path: about.lock, member: m, node: c.path}
		twin := false
		e.session, e.token, twin = t.identity(c.path)
		if m.holds && !m.twin {
			t.session, t.token = e.session, e.token
			held := time.Duration(-1)
			if !m.granted.IsZero() {
				held = now.Sub(m.granted)
			}
			t.released(now, held)
			s.all.released(now, held)
			return e, true
		}
		if !m.holds && !twin && !s.semaphores[about.lock] {
			t.gaveUp++
			s.all.gaveUp++
		}
	}
	return ending{}, false
}

// identity is what was read of one of the lock's znodes, and whether it has a twin,
// as in the mixed layout, by which it may hold.
func (t *track) identity(node string) (session, token int64, twin bool) {
	if t.lock == nil {
		return 0, 0, false
	}
	for i, e := range t.lock.Entries {
		if e.Node == node {
			all := t.lock.Entries
			twin = i > 0 && Together(all[i-1].Entry, e.Entry) || i+1 < len(all) && Together(e.Entry, all[i+1].Entry)
			return e.Session, e.Token, twin
		}
	}
	return 0, 0, false
}

// grant counts a grant. One of the two entries of an attempt in the mixed layout
// comes first after the other has left, and until it leaves as well.
func (s *Survey) grant(t *track, m *member, now time.Time) {
	if t.lock != nil && t.session != 0 {
		m.twin = slices.ContainsFunc(t.lock.Entries, func(e Entry) bool {
			return e.Name == m.Name && e.Session == t.session && e.Token == t.token
		})
		if m.twin {
			return
		}
	}
	wait := time.Duration(-1)
	if !m.came.IsZero() {
		wait = now.Sub(m.came)
	}
	t.granted(now, wait)
	s.all.granted(now, wait)
}

// other takes note of a znode that is no known lock's. One that came may be a lock of
// its own, if it is ephemeral.
func (s *Survey) other(c change) {
	switch {
	case c.typ == zk.EventNodeDeleted:
		delete(s.curious, c.path)
	case c.typ != zk.EventNodeCreated || s.layout.InParent:
	case len(s.curious) >= mostCurious:
		s.skipped = true
	default:
		s.curious[c.path] = time.Now()
	}
}

// record takes note of a lock delay's record.
func (s *Survey) record(c change) {
	switch c.typ {
	case zk.EventNodeCreated:
		if len(s.records) < mostTracks {
			s.records[c.path] = true
		}
	case zk.EventNodeDeleted:
		delete(s.records, c.path)
	}
}

// semaphore takes note of the znode that makes a semaphore.
func (s *Survey) semaphore(lock string, typ zk.EventType) {
	if typ == zk.EventNodeDeleted {
		delete(s.semaphores, lock)
	} else {
		s.semaphores[lock] = true
		if t := s.tracks[lock+"/locks"]; t != nil { // it looked like a lock of its own
			s.gate(lock, t)
		}
	}
}

// gate makes what was counted as a lock the gate of a semaphore. Curator's and zklock's
// semaphores have a gate before they have anything else.
func (s *Survey) gate(lock string, t *track) {
	s.soil(lock+"/locks", t)
	semaphore := s.track(lock)
	for _, m := range t.line.queue {
		if m.holds && !m.granted.IsZero() && !m.twin {
			t.retract(m)
			s.all.retract(m)
		}
		m.holds, m.granted = false, time.Time{}
		semaphore.line.add(m, false)
	}
	t.line.queue = nil
}

// isSemaphore takes note of a semaphore that a walk came by.
func (s *Survey) isSemaphore(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.semaphores[path] = true
}

// soil marks a lock as changed. The mutex is held.
func (s *Survey) soil(path string, t *track) {
	t.since = s.event
	if t.dirty.IsZero() {
		t.dirty = time.Now()
		s.dirty = append(s.dirty, path)
	}
}

// track returns what is known of a lock. The mutex is held.
func (s *Survey) track(path string) *track {
	t := s.tracks[path]
	if t == nil {
		if len(s.tracks) >= mostTracks {
			s.forget()
		}
		t = &track{chronicle: chronicle{step: stepOfOne}}
		s.tracks[path] = t
	}
	return t
}

// forget gives up histories of locks that nobody holds, a part of them at a time.
func (s *Survey) forget() {
	left := mostTracks / 10
	for path, t := range s.tracks {
		if t.lock == nil && t.dirty.IsZero() {
			delete(s.tracks, path)
			if left--; left == 0 {
				return
			}
		}
	}
}
