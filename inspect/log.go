package inspect

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// An Event is a change of a lock's holders that a [Watcher] saw.
type Event struct {
	Number uint64    `json:"number"` // grows with each event of a watcher
	At     time.Time `json:"at"`     // by the local clock
	Kind   EventKind `json:"event"`
	Path   string    `json:"path"`
	// OwnerName, Session, and Token are those of the holder. They are empty if its hold ended
	// before the watcher read its entry.
	OwnerName string `json:"who,omitempty"`
	Session   string `json:"session,omitempty"` // as FormatSession returns it
	Token     int64  `json:"token,omitempty,string"`
	// Seconds is the duration of the wait that ended with the event Acquired, or of the hold
	// that ended with Released, Lost, or Broken; 0 if the start was not seen.
	Seconds float64 `json:"seconds,omitempty"`
	// By and Reason are those of a release request, as [RequesterName] and [RequestReason]
	// return them. Do not trust them, because anyone can write them.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// An EventKind tells what happened.
type EventKind string

// The kinds of events. [History] describes which holds are certainly lost; all others count
// as released.
const (
	Acquired         EventKind = "acquired"
	Released         EventKind = "released"
	Lost             EventKind = "lost"              // the session ended
	Broken           EventKind = "broken"            // Watcher.Break deleted the hold
	ReleaseRequested EventKind = "release-requested" // the holder was asked to release the lock
)

// Limits of the log. Acquires and releases must not push out what is rarer, so that they
// have a ring of their own.
const (
	maxUsualEvents = 5000
	maxRareEvents  = 2000
	maxEventPaths  = 1 << 20 // bytes of the paths in one ring; anyone can create long paths
	maxLockEvents  = 8       // of each lock
	maxUnnamed     = 1000    // events of each lock without the name of a holder
)

// eventLog has the last events of all locks.
type eventLog struct {
	number      uint64
	usual, rare ring
}

// ring has the last events, oldest first.
type ring struct {
	events []*Event
	paths  int // bytes of their paths
}

// add adds an event, and drops the oldest ones above the limits.
func (r *ring) add(e *Event, most int) {
	r.events = append(r.events, e)
	r.paths += len(e.Path)
	old := 0
	for len(r.events)-old > most || r.paths > maxEventPaths {
		r.paths -= len(r.events[old].Path)
		r.events[old] = nil
		old++
	}
	r.events = r.events[old:]
}

// unnamed is an event whose entry was not read yet.
type unnamed struct {
	event *Event
	name  string // of the znode
}

// logEvent adds an event of the entry with this znode name. The caller holds the mutex.
func (s *Watcher) logEvent(t *track, kind EventKind, name string, now time.Time, took time.Duration) *Event {
	s.log.number++
	e := &Event{Number: s.log.number, At: now, Kind: kind, Path: t.path, Seconds: max(0, took).Seconds()}
	if holder := t.entryNamed(name); holder != nil {
		e.nameHolder(holder)
	} else if kind == Acquired && len(t.unnamed) < maxUnnamed && len(name) <= maxName {
		t.unnamed = append(t.unnamed, unnamed{e, strings.Clone(name)}) // name is part of a path
	}
	if kind == ReleaseRequested {
		s.log.rare.add(e, maxRareEvents)
	} else {
		s.log.usual.add(e, maxUsualEvents)
	}
	t.events = append(t.events[max(0, len(t.events)-maxLockEvents+1):], e)
	return e
}

// nameHolder sets whose event it is.
func (e *Event) nameHolder(holder *Entry) {
	e.OwnerName, e.Session, e.Token = OwnerName(holder.Entry), FormatSession(holder.Session), holder.Token
}

// logLoss turns the event of a release into one of a loss. The caller holds the mutex.
func (s *Watcher) logLoss(e *Event, broken bool) {
	if e.Kind = Lost; broken {
		e.Kind = Broken
	}
	s.log.rare.add(e, maxRareEvents)
}

// logRead adds what a read of the lock tells: the holders of earlier events, and new release
// requests. before is the lock as it was read before. The caller holds the mutex.
func (s *Watcher) logRead(t *track, before *Lock, now time.Time) {
	waiting := map[string]*Event{} // by the names of their znodes
	for _, u := range t.unnamed {
		waiting[u.name] = u.event
	}
	t.unnamed = nil
	if t.lock == nil {
		return
	}
	for i := range t.lock.Entries {
		if e := &t.lock.Entries[i]; waiting[e.Name] != nil {
			waiting[e.Name].nameHolder(e)
		}
	}
	var known map[string]int // the entries of before; built if it is needed
	for i, e := range t.lock.Entries {
		if !e.Revoked || !e.Holder || i > 0 && SameAcquire(t.lock.Entries[i-1].Entry, e.Entry) {
			continue
		}
		if known == nil {
			known = indexOf(before).byNode
		}
		at, was := known[e.Node]
		// The time of a request to a holder that the watcher meets for the first time is unknown.
		if was && !before.Entries[at].Revoked || !was && !e.Granted.IsZero() {
			request := s.logEvent(t, ReleaseRequested, e.Name, now, 0)
			request.By, request.Reason = RequesterName(e.Request), RequestReason(e.Request)
		}
	}
}

// entryNamed returns the entry whose znode has this name, as it was last read, or nil.
func (t *track) entryNamed(name string) *Entry {
	i, found := t.index().byName[name]
	if !found {
		return nil
	}
	return &t.lock.Entries[i]
}

// retract removes the event of an acquire that was counted in error. [Watcher.Events] leaves
// out events without a kind.
func (e *Event) retract() { e.Kind = "" }

// Events returns the last events, newest first: of the lock at path, or of all locks if path
// is empty. The watcher keeps the last 5000 acquires and releases of all locks, the last
// 2000 losses, breaks, and release requests, and the last 8 events of each lock,
// or fewer if the histories of all locks take much memory.
func (s *Watcher) Events(path string) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := slices.Concat(s.log.usual.events, s.log.rare.events)
	if path != "" {
		found = nil
		if t := s.tracks[path]; t != nil {
			found = slices.Clone(t.events)
		}
	}
	slices.SortFunc(found, func(a, b *Event) int { return cmp.Compare(b.Number, a.Number) })
	events := make([]Event, 0, len(found))
	for _, e := range slices.Compact(found) { // a loss is in both rings until it is old
		if e.Kind != "" {
			events = append(events, *e)
		}
	}
	return events
}
