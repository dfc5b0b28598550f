package queue

import (
	"cmp"
	"math"
	"slices"
)

// A Listing is a lock's children, sorted out.
type Listing struct {
	Queue     []Entry  // contenders in order
	Foreign   []string // children without a place in the order
	Malformed []string // contenders whose sequence can't be: nobody may be granted
}

// Sort sorts out the children of a lock's znode, as [Names.Sort] of the zero
// Names.
func Sort(children []string) Listing { return Names{}.Sort(children) }

// Sort sorts out the children of a lock's znode: contenders by sequence number,
// then an exclusive one before a shared one (a writer and the reader that it
// becomes have the same number), then by name.
func (n Names) Sort(children []string) Listing { return n.sortUpTo(children, math.MaxInt64) }

// sortUpTo is Sort without the contenders of a higher number than most: who is behind
// is nothing to a waiter, and may be many.
func (n Names) sortUpTo(children []string, most int64) Listing {
	var l Listing
	for _, name := range children {
		switch e, class := n.Parse(name); class {
		case Contender:
			if e.Seq <= most {
				l.Queue = append(l.Queue, e)
			}
		case Malformed:
			l.Malformed = append(l.Malformed, name)
		case Foreign:
			l.Foreign = append(l.Foreign, name)
		}
	}
	slices.SortFunc(l.Queue, func(a, b Entry) int {
		if a.Seq != b.Seq {
			return cmp.Compare(a.Seq, b.Seq)
		}
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	slices.Sort(l.Foreign)
	return l
}

// Ahead returns the entries before the one with this name, and whether it is
// there at all.
func (l Listing) Ahead(name string) (ahead []Entry, found bool) {
	i := slices.IndexFunc(l.Queue, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return nil, false
	}
	return l.Queue[:i], true
}

// Blocker returns the entry that one of this kind has to wait for, given those
// ahead of it in order: the nearest of any kind for an exclusive one, the
// nearest exclusive one for a shared one. No blocker means that the lock is
// held.
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
