package tree

import (
	"iter"
	"slices"
	"time"
)

// The sequences of this file may be left between two values and gone on with
// after other calls of the Tree have changed it, by way of [iter.Pull]: so a
// caller can list a million watches and answer requests in between. What is
// there all the time is yielded once; what comes or goes meanwhile may be or
// not. The order is that of a map.

// passedOver is how many entries a sequence may pass over between two values.
const passedOver = 16

// DataWatches yields what ZooKeeper has in its table of data watches, as path
// and session, those of one path together. They are what the four-letter words
// list (WatchManager.dumpWatches of DataTree.dataWatches); child watches are
// not among them. For each passedOver watches of other kinds it yields session 0, for
// callers that bound the time between two values.
func (t *Tree) DataWatches() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		passed := 0
		for path, list := range t.watches.byPath {
			if len(list) > 1 {
				// Who leaves moves the others in the list itself.
				list = slices.Clone(list)
			}
			for _, w := range list {
				if w.bits&dataMask != 0 {
					if !yield(path, w.conn.session.id) {
						return
					}
				} else if passed++; passed%passedOver == 0 && !yield("", 0) {
					return
				}
			}
		}
	}
}

// SessionEnds yields every session with the moment on the Mono clock at which
// it ends if its client is not heard before.
func (t *Tree) SessionEnds() iter.Seq2[int64, time.Duration] {
	return func(yield func(int64, time.Duration) bool) {
		for id, s := range t.sessions {
			if !yield(id, s.deadline) {
				return
			}
		}
	}
}

// Ephemerals yields every ephemeral node as its session and path, those of one
// session together. For each passedOver sessions without any it yields session 0.
func (t *Tree) Ephemerals() iter.Seq2[int64, string] {
	return func(yield func(int64, string) bool) {
		passed := 0
		for id, s := range t.sessions {
			if s.nodes().live == 0 {
				if passed++; passed%passedOver == 0 && !yield(0, "") {
					return
				}
				continue
			}
			for _, n := range s.nodes().copy() {
				if n.parent != nil && !yield(id, n.path()) {
					return
				}
			}
		}
	}
}
