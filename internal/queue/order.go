package queue

import (
	"cmp"
	"math"
	"slices"
)

// A Listing is a lock's children by class.
type Listing struct {
	Queue     []Entry  // contenders in order
	Foreign   []string // children without a position in the order
	Malformed []string // contenders with an impossible sequence number: no grant is safe
}

// Sort is [Names.Sort] of the zero Names.
func Sort(children []string) Listing { return Names{}.Sort(children) }

// Sort classifies the children of a lock's znode. It sorts contenders by sequence number,
// then exclusive before shared (a writer and the reader that it becomes have the same
// number), then by name.
func (n Names) Sort(children []string) Listing { return n.sortUpTo(children, math.MaxInt64) }

// sortUpTo is Sort without the contenders whose number is above most: entries after a
// waiter do not matter to it, and there may be many.
func (n Names) sortUpTo(children []string, most int64) Listing {
	var l Listing
	found := make([]Entry, 0, len(children))
	for _, name := range children {
		switch e, class := n.Parse(name); class {
		case Contender:
			if e.Seq <= most {
				found = append(found, e)
			}
		case Malformed:
			l.Malformed = append(l.Malformed, name)
		case Foreign:
			l.Foreign = append(l.Foreign, name)
		}
	}
	sortEntries(found)
	l.Queue = found
	slices.Sort(l.Foreign)
	return l
}

// sortEntries sorts entries in place. An entry is large, and waiters sort long queues, so it
// sorts numbers and indexes, and then moves each entry once.
func sortEntries(entries []Entry) {
	type key struct {
		seq  int64
		from int // the index of the entry
	}
	keys := make([]key, len(entries))
	for i := range entries {
		keys[i] = key{entries[i].Seq, i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.seq != b.seq {
			return cmp.Compare(a.seq, b.seq)
		}
		x, y := &entries[a.from], &entries[b.from]
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name))
	})
	for i := range keys { // each cycle of the permutation
		first, to := entries[i], i
		for keys[to].from != i {
			from := keys[to].from
			entries[to], keys[to].from = entries[from], to
			to = from
		}
		entries[to], keys[to].from = first, to
	}
}

// Ahead returns the entries before the one with this name, and whether that one exists.
func (l Listing) Ahead(name string) (ahead []Entry, found bool) {
	i := slices.IndexFunc(l.Queue, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return nil, false
	}
	return l.Queue[:i], true
}

// Blocker returns the entry that an entry of this kind has to wait for, given the entries
// ahead in order: for an exclusive entry the last one, for a shared entry the last
// exclusive one. If there is no blocker, the entry holds the lock.
func Blocker(kind Kind, ahead []Entry) (Entry, bool) {
	for i := len(ahead) - 1; i >= 0; i-- {
		if kind == Exclusive || ahead[i].Kind == Exclusive {
			return ahead[i], true
		}
	}
	return Entry{}, false
}

// Holders returns how many entries at the head of the queue hold the lock: the
// first one, or all readers before the first exclusive entry.
func Holders(queue []Entry) int {
	if len(queue) == 0 {
		return 0
	}
	if queue[0].Kind == Exclusive {
		return 1
	}
	n := slices.IndexFunc(queue, func(e Entry) bool { return e.Kind == Exclusive })
	if n < 0 {
		return len(queue)
	}
	return n
}
