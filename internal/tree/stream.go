package tree

import (
	"iter"
	"slices"
	"time"
)

// With [iter.Pull], a caller may suspend the sequences of this file between two
// values and continue after other calls have changed the Tree. So it can list a
// million watches and answer requests in between. Entries that exist the whole time
// are yielded once. Entries that are added or removed in between may be yielded or
// not. The order is that of a map.

// maxSkipped is how many entries a sequence may skip between two values.
const maxSkipped = 16

// DataWatches yields the entries of ZooKeeper's table of data watches as path and
// session, those of one path together. The four-letter words list them
// (WatchManager.dumpWatches of DataTree.dataWatches), without child watches. For each
// maxSkipped watches of other kinds it yields session 0, for callers that bound the
// time between two values.
func (t *Tree) DataWatches() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		passed := 0
		for path, list := range t.watches.byPath {
			if len(list) > 1 {
				// A connection that is removed moves the other entries within the
				// list.
				list = slices.Clone(list)
			}
			for _, w := range list {
				if w.bits&dataMask != 0 {
					if !yield(path, w.conn.session.id) {
						return
					}
				} else if passed++; passed%maxSkipped == 0 && !yield("", 0) {
					return
				}
			}
		}
	}
}

// SessionEnds yields every session with its deadline on the Mono clock.
func (t *Tree) SessionEnds() iter.Seq2[int64, time.Duration] {
	return func(yield func(int64, time.Duration) bool) {
		for id, s := range t.sessions {
			if !yield(id, s.deadline) {
				return
			}
		}
	}
}

// Ephemerals yields every ephemeral node as session and path, those of one session
// together. For each maxSkipped sessions without nodes and deleted nodes it yields
// session 0.
func (t *Tree) Ephemerals() iter.Seq2[int64, string] {
	return func(yield func(int64, string) bool) {
		passed := 0
		for _, s := range t.sessions {
			if s.nodes().count == 0 {
				if passed++; passed%maxSkipped == 0 && !yield(0, "") {
					return
				}
				continue
			}
			if !yieldNodes(s, &passed, yield) {
				return
			}
		}
	}
}

// yieldNodes yields the nodes of one session for Ephemerals, and reports whether the
// caller wants more. passed counts what was skipped.
func yieldNodes(s *session, passed *int, yield func(int64, string) bool) bool {
	c := s.nodes().cursor()
	defer c.close()
	for n := c.visit(); n != nil; n = c.visit() {
		if n.parent != nil {
			if !yield(s.id, n.path()) {
				return false
			}
		} else if *passed++; *passed%maxSkipped == 0 && !yield(0, "") {
			return false
		}
	}
	return true
}
