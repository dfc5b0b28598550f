package survey

import (
	"cmp"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// line is a lock's queue as the names of its znodes tell it, which is all that
// events bring. It knows who holds at each moment without a read.
type line struct {
	queue   []member // in order
	leases  []member // of a semaphore, in whose line the queue is the gate's
	touched bool     // who holds is to be worked out anew
	// removed are names that left since the lock was last read, with the number of
	// the event. A listing that was under way may still have them.
	removed map[string]int64
}

// member is one entry.
type member struct {
	queue.Entry
	came    time.Time // zero if that was not seen
	granted time.Time // zero if that was not seen
	holds   bool
	twin    bool // it stands for a hold that was counted by another entry
	// gate is the entry that stood first at the gate when a lease came: whose it is,
	// and who waits for room as long as it stands there. Empty if none did.
	gate  string
	event int64 // number of the event that told of it
}

// add takes in an entry, unless it is there.
func (l *line) add(m member, lease bool) {
	in := &l.queue
	if lease {
		in = &l.leases
	}
	l.touched = insert(in, m) || l.touched
}

// insert puts an entry in its place, which is almost always at the end.
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

// remove takes an entry out.
func (l *line) remove(name string, event int64) (m member, found bool) {
	if l.removed == nil {
		l.removed = map[string]int64{}
	}
	l.removed[name] = event
	for _, in := range []*[]member{&l.queue, &l.leases} {
		if i := slices.IndexFunc(*in, func(m member) bool { return m.Name == name }); i >= 0 {
			m = (*in)[i]
			*in = slices.Delete(*in, i, i+1)
			l.touched = true
			return m, true
		}
	}
	return m, false
}

// settle works out who holds, and calls f with those who did not before. Of a
// semaphore, those in the queue stand at the gate and hold nothing; whose permits are
// made leaves it when there is room for them.
func (l *line) settle(now time.Time, semaphore bool, f func(m *member)) {
	if !l.touched {
		return
	}
	l.touched = false
	if semaphore {
		for i := range l.leases {
			if m := &l.leases[i]; !m.holds && !l.stands(m.gate) {
				m.holds, m.granted = true, now
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
		if m := &l.queue[i]; !m.holds {
			m.holds, m.granted = true, now
			f(m)
		}
	}
}

// stands reports whether an entry of this name is in the queue.
func (l *line) stands(name string) bool {
	return name != "" && slices.ContainsFunc(l.queue, func(m member) bool { return m.Name == name })
}

// atGate returns who stands first at a semaphore's gate; nobody is the zero member.
func (l *line) atGate() (m member) {
	if len(l.queue) > 0 {
		m = l.queue[0]
	}
	return m
}

// find returns the entry with a name.
func (l *line) find(name string) (m member, found bool) {
	for _, in := range [][]member{l.queue, l.leases} {
		if i := slices.IndexFunc(in, func(m member) bool { return m.Name == name }); i >= 0 {
			return in[i], true
		}
	}
	return m, false
}

// reconcile brings the line in accord with a lock that was read after the event
// number since was told: it takes in and throws out what no later event explains, as
// after a time without a connection. When that came or went was not seen.
func (l *line) reconcile(lock *Lock, names queue.Names, since int64) {
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
		l.add(member{Entry: parsed, holds: e.Holder}, leased(e.Entry))
	}
	past := func(m member) bool { return !there[m.Name] && m.event <= since }
	l.queue = slices.DeleteFunc(l.queue, past)
	// Permits that wait for room are not shown: for them stands the gate's entry.
	l.leases = slices.DeleteFunc(l.leases, func(m member) bool { return past(m) && (m.holds || !l.stands(m.gate)) })
	for name, event := range l.removed {
		if event <= since {
			delete(l.removed, name)
		}
	}
	l.touched = true
}
