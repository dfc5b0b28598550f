package queue

import (
	"cmp"
	"math"
	"slices"
	"sync"
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
func (n Names) Sort(children []string) Listing {
	return (&sorter{foreign: true}).sort(n, children, math.MaxInt64)
}

// A sorter has the memory that sorting needs, for reuse. Each waiter sorts one listing.
type sorter struct {
	entries []Entry
	keys    []sortKey
	foreign bool // the listing has the foreign children
}

type sortKey struct {
	seq  int64
	from int // the index of the entry
}

// sorters are shared by all clients of the process, so that each idle client need not keep
// one.
var sorters = sync.Pool{New: func() any { return new(sorter) }}

// maxSorted is the number of entries up to which a sorter is kept.
const maxSorted = 1024

// free makes the sorter available to others. The queue that it has sorted ends.
func (s *sorter) free() {
	if cap(s.entries) > maxSorted {
		return
	}
	clear(s.entries)
	sorters.Put(s)
}

// sort is [Names.Sort] without the contenders whose number is above most, and without foreign
// children unless s.foreign is set: they do not matter to a waiter, and there may be many. The
// queue of the result is in the sorter's memory.
func (s *sorter) sort(n Names, children []string, most int64) Listing {
	var l Listing
	contenders := 0 // at most: a hostile server may list millions of names, and an entry is large
	for _, name := range children {
		if len(name) > digits {
			contenders++
		}
	}
	s.entries = slices.Grow(s.entries[:0], contenders)
	for _, name := range children {
		switch e, class := n.Parse(name); class {
		case Contender:
			if e.Seq <= most {
				s.entries = append(s.entries, e)
			}
		case Malformed:
			l.Malformed = append(l.Malformed, name)
		case Foreign:
			if s.foreign {
				l.Foreign = append(l.Foreign, name)
			}
		}
	}
	s.order()
	l.Queue = s.entries
	slices.Sort(l.Foreign)
	return l
}

// order sorts the entries. An entry is large, and waiters sort long queues, so it sorts
// numbers and indexes, and then moves each entry once.
func (s *sorter) order() {
	entries := s.entries
	keys := slices.Grow(s.keys[:0], len(entries))[:len(entries)]
	s.keys = keys
	for i := range entries {
		keys[i] = sortKey{entries[i].Seq, i}
	}
	slices.SortFunc(keys, func(a, b sortKey) int {
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
