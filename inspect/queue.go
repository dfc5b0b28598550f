package inspect

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// lockQueue is a lock's queue as the names of its znodes tell it, because events bring only
// names. It knows the holders at each moment without a read.
type lockQueue struct {
	queue    []*member // sorted
	leases   []*member // of a semaphore; queue is then the queue at its gate
	outdated bool      // the holders must be computed again
	// readers is how many readers at the head of the queue are known to hold. Nothing before
	// that place changed since.
	readers int
	// removed are names that left since the lock was last read, with the number of the
	// event. A listing in progress may still have them.
	removed map[string]int64
	bytes   int // estimated memory of all these
}

// memberBytes estimates the memory of an entry, without its name.
const memberBytes = 256

// maxRemovedNames limits the names in removed. Above it, a listing in progress can bring back
// an entry that left, until the lock is read again.
const maxRemovedNames = 10_000

// member is one entry.
type member struct {
	queue.Entry
	arrived time.Time // zero if the arrival was not seen
	granted time.Time // zero if the grant was not seen
	logged  *Event    // of the grant; nil if it was not seen
	holder  bool
	twin    bool // another entry of the same acquire was counted
	// gate is the first entry at the gate when a lease arrived. That client owns the lease,
	// and waits for room while the entry is in the queue. Empty if there was none.
	gate  queue.Entry
	event int64 // number of the event of its creation
}

// add adds an entry, unless it is there.
func (l *lockQueue) add(m member, lease bool) {
	in := &l.queue
	if lease {
		in = &l.leases
	}
	at, found := search(*in, m.Entry)
	if found {
		return
	}
	// The name may be part of a longer string, and the other fields of the entry are not used.
	m.Entry = queue.Entry{Name: strings.Clone(m.Name), Seq: m.Seq, Kind: m.Kind}
	*in = slices.Insert(*in, at, &m)
	l.bytes += memberBytes + len(m.Name)
	l.changed(lease, at)
}

// search returns the place of an entry, which is almost always the end for a new one, and
// whether it is there.
func search(in []*member, e queue.Entry) (at int, found bool) {
	order := func(m *member, e queue.Entry) int {
		return cmp.Or(cmp.Compare(m.Seq, e.Seq), cmp.Compare(m.Kind, e.Kind), cmp.Compare(m.Name, e.Name))
	}
	if n := len(in); n == 0 || order(in[n-1], e) < 0 {
		return n, false
	}
	return slices.BinarySearchFunc(in, e, order)
}

// changed notes that an entry arrived at this place or left it.
func (l *lockQueue) changed(lease bool, at int) {
	l.outdated = true
	if !lease {
		l.readers = min(l.readers, at)
	}
}

// remove removes an entry and returns it. It adds its name to removed if there is room.
func (l *lockQueue) remove(e queue.Entry, event int64, room bool) (m member, found bool) {
	if l.removed == nil {
		l.removed = map[string]int64{}
	}
	if _, again := l.removed[e.Name]; again {
		l.removed[e.Name] = event
	} else if room && len(l.removed) < maxRemovedNames && len(e.Name) <= maxName {
		l.removed[e.Name] = event
		l.bytes += memberBytes + len(e.Name)
	}
	for _, in := range []*[]*member{&l.queue, &l.leases} {
		at, there := search(*in, e)
		if !there {
			continue
		}
		m = *(*in)[at]
		*in = slices.Delete(*in, at, at+1)
		l.bytes -= memberBytes + len(m.Name)
		readers := l.readers - 1
		l.changed(in == &l.leases, at)
		if in == &l.queue && at <= readers {
			l.readers = readers // those after it still hold
		}
		return m, true
	}
	return m, false
}

// updateHolders computes the holders, and calls f with each new one. In a semaphore, the
// entries in the queue wait at the gate. A client that created its lease leaves the gate
// when there is room for it. Otherwise, the first entry holds, or all readers before the
// first exclusive entry, as by [queue.Holders].
func (l *lockQueue) updateHolders(now time.Time, semaphore bool, f func(m *member)) {
	if !l.outdated {
		return
	}
	l.outdated = false
	grant := func(m *member) {
		if !m.holder {
			m.holder, m.granted = true, now
			f(m)
		}
	}
	if semaphore {
		for _, m := range l.leases {
			if !m.holder && !l.inQueue(m.gate) {
				grant(m)
			}
		}
		return
	}
	for ; l.readers < len(l.queue) && l.queue[l.readers].Kind != queue.Exclusive; l.readers++ {
		grant(l.queue[l.readers])
	}
	if l.readers == 0 && len(l.queue) > 0 {
		grant(l.queue[0])
	}
}

// inQueue reports whether the entry is in the queue.
func (l *lockQueue) inQueue(e queue.Entry) bool {
	_, found := search(l.queue, e)
	return found
}

// firstAtGate returns the first entry at a semaphore's gate, or the zero member.
func (l *lockQueue) firstAtGate() (m member) {
	if len(l.queue) > 0 {
		m = *l.queue[0]
	}
	return m
}

// find returns the entry.
func (l *lockQueue) find(e queue.Entry) (m member, found bool) {
	for _, in := range [][]*member{l.queue, l.leases} {
		if at, found := search(in, e); found {
			return *in[at], true
		}
	}
	return m, false
}

// reconcile matches the queue with a lock that was read after the event with number since.
// It adds and removes what no later event explains, as after a lost connection. The times
// of those changes stay unknown.
func (l *lockQueue) reconcile(lock *Lock, names queue.Names, since int64) {
	there := make(map[string]bool, len(lock.Entries))
	for _, e := range lock.Contenders() {
		there[e.Name] = true
		parsed, class := names.Parse(e.Name)
		if e.Node == e.Path {
			parsed, class = queue.Entry{Name: e.Name}, queue.Contender
		}
		if class != queue.Contender || l.removed[e.Name] > since {
			continue
		}
		l.add(member{Entry: parsed, holder: e.Holder}, leased(e.Entry))
	}
	past := func(m *member) bool { return !there[m.Name] && m.event <= since }
	l.queue = slices.DeleteFunc(l.queue, past)
	// A lock does not show permits that wait for room. The gate's entry stands for them.
	l.leases = slices.DeleteFunc(l.leases, func(m *member) bool { return past(m) && (m.holder || !l.inQueue(m.gate)) })
	for name, event := range l.removed {
		if event <= since {
			delete(l.removed, name)
		}
	}
	l.bytes = 0
	for _, m := range slices.Concat(l.queue, l.leases) {
		l.bytes += memberBytes + len(m.Name)
	}
	for name := range l.removed {
		l.bytes += memberBytes + len(name)
	}
	l.outdated, l.readers = true, 0
}
