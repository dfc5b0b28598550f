package survey

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// work reads locks that have changed and looks at znodes that came, as far as the
// budget goes, and returns for how long there is nothing to do.
func (s *Survey) work(ctx context.Context) time.Duration {
	for published := time.Now(); ctx.Err() == nil; {
		now := time.Now()
		if now.Sub(published) >= s.opts.Settle {
			s.publish()
			published = now
		}
		s.mu.Lock()
		offline := s.conn == 0
		suspects := s.suspected(now)
		at, wait := s.nextDirty(now)
		node := ""
		if at == "" && len(s.curious) > 0 {
			for node = range s.curious {
				break
			}
		}
		s.mu.Unlock()
		if len(suspects) > 0 && !offline {
			s.resolve(ctx, suspects)
		}
		if offline || at == "" && node == "" {
			return s.rest()
		}
		if wait = max(wait, s.budget.wait(now)); wait > 0 {
			return wait
		}
		if at != "" {
			s.refresh(ctx, at)
		} else {
			s.satisfy(ctx, node)
		}
	}
	return 0
}

// rest is how long there is nothing to do while no lock is to be read.
func (s *Survey) rest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.suspects) > 0 {
		return s.opts.Settle
	}
	return time.Hour // an event wakes it
}

// nextDirty is the lock that is to be read next and how long it may yet change before.
// The mutex is held.
func (s *Survey) nextDirty(now time.Time) (path string, wait time.Duration) {
	for len(s.dirty) > 0 {
		path = s.dirty[0]
		if t := s.tracks[path]; t != nil && !t.dirty.IsZero() {
			return path, s.opts.Settle - now.Sub(t.dirty)
		}
		s.dirty = s.dirty[1:]
	}
	return "", 0
}

// refresh reads a lock that has changed.
func (s *Survey) refresh(ctx context.Context, at string) {
	s.mu.Lock()
	t := s.tracks[at]
	t.dirty = time.Time{}
	s.dirty = s.dirty[1:]
	since := s.event
	before := t.before()
	t.data = nil
	// Of a look that failed it is not known how far it came.
	reads := max(1, 1+len(t.line.queue)+len(t.line.leases)-len(before))
	gate := path.Base(at) == "locks" && s.semaphores[path.Dir(at)]
	s.mu.Unlock()
	if gate { // of a semaphore, whose entries these are
		s.adopt(at, &Lock{Path: at}, since)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.Each)
	defer cancel()
	l, err := s.look(ctx, s.own, at, before)
	if s.layout != (zklock.Layout{}) && err == nil && len(l.Contenders()) == 0 {
		l, err = s.look(ctx, s.plain, at, before)
	}
	if err == nil {
		reads = cost(l, before)
	}
	s.budget.spend(reads)
	s.mu.Lock()
	s.status.Reads += int64(reads)
	s.mu.Unlock()
	switch {
	case err == nil:
		s.adopt(at, l, since)
	case errors.Is(err, zklock.ErrInvalidName):
		s.adopt(at, &Lock{Path: at}, since)
	case !errors.Is(err, zk.ErrNoAuth): // else it stays as it was, until it changes again
		s.mu.Lock()
		s.soil(at, t)
		s.mu.Unlock()
	}
}

// before are the entries that are known and need not be read again.
func (t *track) before() []zklock.Entry {
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

// known is before, for walks. Changes may have been missed: what the holders' znodes
// say, in which wishes are written, is read again.
func (s *Survey) known(path string) []zklock.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tracks[path]
	if t == nil {
		return nil
	}
	return slices.DeleteFunc(t.before(), func(e zklock.Entry) bool { return e.Holder })
}

// cost is how many reads a look at a lock took.
func cost(l *Lock, before []zklock.Entry) int {
	reads := 1
	if l.Kind == Semaphore {
		reads = 5
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

// satisfy looks whether a znode that came is a lock of one znode.
func (s *Survey) satisfy(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.Each)
	defer cancel()
	stat, there, err := s.z.Exists(ctx, node)
	s.budget.spend(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Reads++
	came, wanted := s.curious[node]
	delete(s.curious, node)
	if err == nil && there && wanted && stat.EphemeralOwner != 0 {
		t := s.track(node)
		t.line.add(member{Entry: queue.Entry{Name: path.Base(node)}, came: came, event: s.event}, false)
		s.soil(node, t)
	}
}

// adopt takes in a lock that was read after the event number since was told.
func (s *Survey) adopt(path string, l *Lock, since int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.track(path)
	if t.since <= since {
		t.dirty = time.Time{} // what it was to be read for is in this
	}
	now := time.Now()
	t.line.reconcile(l, s.names(), since)
	t.line.settle(now, l.Kind == Semaphore, func(m *member) { s.grant(t, m, now) })
	if len(l.Contenders()) == 0 {
		l = nil
	}
	if l != nil {
		for i := range l.Entries {
			if m, ok := t.line.find(l.Entries[i].Name); ok && l.Entries[i].Holder {
				l.Entries[i].Granted = m.granted
			}
		}
	}
	s.replace(path, t, l)
}

// replace puts a lock in the place of what it was. The mutex is held.
func (s *Survey) replace(path string, t *track, l *Lock) {
	if t.lock == nil && l == nil {
		return
	}
	t.lock = l
	t.fresh = true
	s.fresh = append(s.fresh, path)
	s.stale = true
}

// publish makes a snapshot of what is known, if that is another one.
func (s *Survey) publish() {
	s.mu.Lock()
	if !s.stale {
		s.mu.Unlock()
		return
	}
	s.stale = false
	s.dirty = slices.DeleteFunc(s.dirty, func(path string) bool { t := s.tracks[path]; return t == nil || t.dirty.IsZero() })
	s.status.Behind = len(s.dirty)
	if s.status.Connected {
		s.status.Heard = time.Now()
	}
	next := &Snapshot{Version: s.snapshot.Version + 1, At: time.Now(), Locks: s.snapshot.Locks, Status: s.status}
	if s.status.Walked && s.conn != 0 && s.conn != s.whole {
		next.Status.Complete, next.Status.Why = false, "the connection was lost for a while: what came meanwhile is looked for soon"
	}
	if s.skipped {
		next.Status.Complete, next.Status.Why = false, "so many znodes come that not all could be looked at; give a prefix with less beside the locks"
	}
	if len(s.fresh) > 0 {
		next.Locks = s.merged(next.Version)
	}
	s.snapshot = next
	changed := s.changed
	s.changed = make(chan struct{})
	s.mu.Unlock()
	close(changed)
}

// merged are the snapshot's locks with those that are fresh. The mutex is held.
func (s *Survey) merged(version uint64) []*Lock {
	locks := make([]*Lock, 0, len(s.snapshot.Locks)+len(s.fresh))
	for _, l := range s.snapshot.Locks {
		if t := s.tracks[l.Path]; t == nil || !t.fresh {
			locks = append(locks, l)
		}
	}
	for _, path := range s.fresh {
		t := s.tracks[path]
		if t == nil || !t.fresh {
			continue // twice in the list
		}
		t.fresh = false
		if t.lock != nil {
			t.lock.Version = version
			locks = append(locks, t.lock)
			continue
		}
		s.gone = append(s.gone, departure{path, version})
	}
	s.gone = s.gone[max(0, len(s.gone)-mostDepartures):]
	s.fresh = s.fresh[:0]
	slices.SortFunc(locks, func(a, b *Lock) int { return byPath(a, b.Path) })
	return locks
}
