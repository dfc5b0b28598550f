package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// lockQueue is a lock's queue as the names of its znodes tell it, because events bring only
// names. It knows the holders at each moment without a read.
type lockQueue struct {
	queue    []member // sorted
	leases   []member // of a semaphore; queue is then the queue at its gate
	outdated bool     // the holders must be computed again
	// removed are names that left since the lock was last read, with the number of the
	// event. A listing in progress may still have them.
	removed map[string]int64
}

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
	gate  string
	event int64 // number of the event of its creation
}

// add adds an entry, unless it is there.
func (l *lockQueue) add(m member, lease bool) {
	in := &l.queue
	if lease {
		in = &l.leases
	}
	l.outdated = insert(in, m) || l.outdated
}

// insert adds an entry at its place, which is almost always the end.
func insert(in *[]member, m member) bool {
	order := func(a, b member) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}
	at := len(*in)
	if at > 0 && order((*in)[at-1], m) >= 0 {
		var found bool
		if at, found = slices.BinarySearchFunc(*in, m, order); found {
			return false
		}
	}
	*in = slices.Insert(*in, at, m)
	return true
}

// remove removes an entry and returns it.
func (l *lockQueue) remove(name string, event int64) (m member, found bool) {
	if l.removed == nil {
		l.removed = map[string]int64{}
	}
	l.removed[name] = event
	for _, in := range []*[]member{&l.queue, &l.leases} {
		if i := slices.IndexFunc(*in, func(m member) bool { return m.Name == name }); i >= 0 {
			m = (*in)[i]
			*in = slices.Delete(*in, i, i+1)
			l.outdated = true
			return m, true
		}
	}
	return m, false
}

// updateHolders computes the holders, and calls f with each new one. In a semaphore, the
// entries in the queue wait at the gate. A client that created its lease leaves the gate
// when there is room for it.
func (l *lockQueue) updateHolders(now time.Time, semaphore bool, f func(m *member)) {
	if !l.outdated {
		return
	}
	l.outdated = false
	if semaphore {
		for i := range l.leases {
			if m := &l.leases[i]; !m.holder && !l.inQueue(m.gate) {
				m.holder, m.granted = true, now
				f(m)
			}
		}
		return
	}
	entries := make([]queue.Entry, 0, 8)
	for _, m := range l.queue {
		entries = append(entries, m.Entry)
		if m.Kind == queue.Exclusive {
			break
		}
	}
	for i := range queue.Holders(entries) {
		if m := &l.queue[i]; !m.holder {
			m.holder, m.granted = true, now
			f(m)
		}
	}
}

// inQueue reports whether an entry with this name is in the queue.
func (l *lockQueue) inQueue(name string) bool {
	return name != "" && slices.ContainsFunc(l.queue, func(m member) bool { return m.Name == name })
}

// firstAtGate returns the first entry at a semaphore's gate, or the zero member.
func (l *lockQueue) firstAtGate() (m member) {
	if len(l.queue) > 0 {
		m = l.queue[0]
	}
	return m
}

// find returns the entry with this name.
func (l *lockQueue) find(name string) (m member, found bool) {
	for _, in := range [][]member{l.queue, l.leases} {
		if i := slices.IndexFunc(in, func(m member) bool { return m.Name == name }); i >= 0 {
			return in[i], true
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
	past := func(m member) bool { return !there[m.Name] && m.event <= since }
	l.queue = slices.DeleteFunc(l.queue, past)
	// A lock does not show permits that wait for room. The gate's entry stands for them.
	l.leases = slices.DeleteFunc(l.leases, func(m member) bool { return past(m) && (m.holder || !l.inQueue(m.gate)) })
	for name, event := range l.removed {
		if event <= since {
			delete(l.removed, name)
		}
	}
	l.outdated = true
}
