package session

import (
	"maps"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// watchKinds is a set of kinds of watches on one path.
type watchKinds uint8

const (
	dataWatch       watchKinds = 1 << iota // one-shot, on an existing znode
	existWatch                             // one-shot, on a missing znode
	childWatch                             // one-shot, on the list of children
	persistentWatch                        // persistent
	recursiveWatch                         // persistent, with all descendants
)

// watches records the watches that the server holds for this session, as far as its
// answers tell. They must be set again on the next connection.
type watches struct {
	paths map[string]watchKinds
}

// add records a watch.
func (w *watches) add(path string, k watchKinds) {
	if w.paths == nil {
		w.paths = make(map[string]watchKinds)
	}
	w.paths[path] |= k
}

// remove deletes watches and returns those that existed.
func (w *watches) remove(path string, k watchKinds) watchKinds {
	had := w.paths[path]
	if had&^k == 0 {
		delete(w.paths, path)
	} else {
		w.paths[path] = had &^ k
	}
	return had & k
}

// answered records the watch that the server has set for an answered request. An
// exists watch that found a znode is a data watch. If it were set again as an exists
// watch, the client would not learn that the znode was deleted in between.
func (w *watches) answered(o *Op, code wire.ErrCode) {
	if o.Code == wire.OpAddWatch {
		if code == wire.ErrOK {
			w.add(o.Path, addedKind(o.WatchMode))
		}
		return
	}
	if !o.Watch {
		return
	}
	switch {
	// Servers keep one watch for both. The answer tells which one it is now, even if
	// an ACL suppressed the event of the change.
	case o.Code == wire.OpExists && code == wire.ErrNoNode:
		w.remove(o.Path, dataWatch)
		w.add(o.Path, existWatch)
	case code != wire.ErrOK:
		// A failed request leaves no watch.
	case o.Code == wire.OpExists || o.Code == wire.OpGetData:
		w.remove(o.Path, existWatch)
		w.add(o.Path, dataWatch)
	case o.Code == wire.OpGetChildren || o.Code == wire.OpGetChildren2:
		w.add(o.Path, childWatch)
	}
}

// addedKind returns the kind of watch that addWatch sets.
func addedKind(m wire.AddWatchMode) watchKinds {
	if m == wire.AddWatchPersistentRecursive {
		return recursiveWatch
	}
	return persistentWatch
}

// fired deletes the watches that an event consumed.
func (w *watches) fired(t wire.EventType, path string) {
	switch t {
	case wire.EventNodeCreated, wire.EventNodeDataChanged, wire.EventDataWatchRemoved:
		w.remove(path, dataWatch|existWatch)
	case wire.EventNodeDeleted:
		w.remove(path, dataWatch|existWatch|childWatch)
	case wire.EventNodeChildrenChanged, wire.EventChildWatchRemoved:
		w.remove(path, childWatch)
	case wire.EventPersistentWatchRemoved:
		w.remove(path, persistentWatch|recursiveWatch)
	}
}

// removedKinds returns the kinds of watches that a removal of type t removes.
func removedKinds(t wire.WatcherType) watchKinds {
	switch t {
	case wire.WatcherChildren:
		return childWatch
	case wire.WatcherData:
		return dataWatch | existWatch
	case wire.WatcherPersistent:
		return persistentWatch
	case wire.WatcherPersistentRecursive:
		return recursiveWatch
	}
	return dataWatch | existWatch | childWatch | persistentWatch | recursiveWatch
}

// setWatchesBytes is the maximum size of a frame that sets watches. As in Java's
// ClientCnxn, it is far below what servers accept by default.
const setWatchesBytes = 128 << 10

// setWatchesOverhead is the size of a frame that sets no watches: the header, the zxid, and
// the lengths of five lists.
const setWatchesOverhead = headerSize + 8 + 5*4

// setWatchSize returns the size that the watch of one kind on a path adds to a frame.
func setWatchSize(path string) int { return 4 + len(path) }

// frames appends the requests that set all watches again, each of at most maxRequest bytes.
// It returns how many there are. The paths are in sorted order.
func (w *watches) frames(b []byte, zxid int64, maxRequest int) ([]byte, int) {
	n := 0
	for batch := range w.batches(min(setWatchesBytes, maxRequest)) {
		batch.RelativeZxid = zxid
		b = appendWatchBatch(b, batch)
		n++
	}
	return b, n
}

// batches yields the watches in portions whose frames have at most limit bytes. Submit
// refuses a watch that does not fit alone.
func (w *watches) batches(limit int) func(yield func(*wire.SetWatches2) bool) {
	return func(yield func(*wire.SetWatches2) bool) {
		batch, size := emptyBatch(), setWatchesOverhead
		// Sorted, because the order of a map must not affect what is sent.
		for _, path := range slices.Sorted(maps.Keys(w.paths)) {
			for k := dataWatch; k <= recursiveWatch; k <<= 1 {
				if w.paths[path]&k == 0 {
					continue
				}
				if size > setWatchesOverhead && size+setWatchSize(path) > limit {
					if !yield(batch) {
						return
					}
					batch, size = emptyBatch(), setWatchesOverhead
				}
				list := listOf(batch, k)
				*list = append(*list, path)
				size += setWatchSize(path)
			}
		}
		if size > setWatchesOverhead {
			yield(batch)
		}
	}
}

// emptyBatch returns a record with empty lists, because a server refuses null lists.
func emptyBatch() *wire.SetWatches2 {
	return &wire.SetWatches2{
		DataWatches: []string{}, ExistWatches: []string{}, ChildWatches: []string{},
		PersistentWatches: []string{}, PersistentRecursiveWatches: []string{},
	}
}

// listOf returns the list of b for watches of one kind.
func listOf(b *wire.SetWatches2, kind watchKinds) *[]string {
	switch kind {
	case dataWatch:
		return &b.DataWatches
	case existWatch:
		return &b.ExistWatches
	case childWatch:
		return &b.ChildWatches
	case persistentWatch:
		return &b.PersistentWatches
	}
	return &b.PersistentRecursiveWatches
}

// appendWatchBatch appends a framed request. It uses the older request if that is
// sufficient, so that servers before 3.6 understand it.
func appendWatchBatch(b []byte, w *wire.SetWatches2) []byte {
	if len(w.PersistentWatches)+len(w.PersistentRecursiveWatches) > 0 {
		return wire.AppendRequest(b, wire.XidSetWatches, wire.OpSetWatches2, w)
	}
	old := &wire.SetWatches{RelativeZxid: w.RelativeZxid, DataWatches: w.DataWatches,
		ExistWatches: w.ExistWatches, ChildWatches: w.ChildWatches}
	return wire.AppendRequest(b, wire.XidSetWatches, wire.OpSetWatches, old)
}
