package session

import (
	"maps"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// kinds is a set of kinds of watch on one path.
type kinds uint8

const (
	dataWatch       kinds = 1 << iota // one-shot, on an existing znode
	existWatch                        // one-shot, on a missing znode
	childWatch                        // one-shot, on the list of children
	persistentWatch                   // lasting
	recursiveWatch                    // lasting, with everything below
)

// watches are the watches that the server has for this session, as far as its
// answers tell: what must be set again on the next connection.
type watches struct {
	paths map[string]kinds
}

// add notes a watch.
func (w *watches) add(path string, k kinds) {
	if w.paths == nil {
		w.paths = make(map[string]kinds)
	}
	w.paths[path] |= k
}

// remove forgets watches and returns those that there were.
func (w *watches) remove(path string, k kinds) kinds {
	had := w.paths[path]
	if had&^k == 0 {
		delete(w.paths, path)
	} else {
		w.paths[path] = had &^ k
	}
	return had & k
}

// answered notes what watch the server has set for an answered request. An
// exists watch that found a znode is a data watch: set again as an exists
// watch it would stay silent if the znode was deleted meanwhile.
func (w *watches) answered(o *Op, code wire.ErrCode) {
	if o.Code == wire.OpAddWatch {
		if code == wire.ErrOK {
			w.add(o.Path, lastingKind(o.Lasting))
		}
		return
	}
	if !o.Watch {
		return
	}
	switch {
	// Servers have one watch for both: an answer tells what has become of it,
	// also where the event of the change was kept back by an ACL.
	case o.Code == wire.OpExists && code == wire.ErrNoNode:
		w.remove(o.Path, dataWatch)
		w.add(o.Path, existWatch)
	case code != wire.ErrOK:
		// No watch is left by a request that failed.
	case o.Code == wire.OpExists || o.Code == wire.OpGetData:
		w.remove(o.Path, existWatch)
		w.add(o.Path, dataWatch)
	case o.Code == wire.OpGetChildren || o.Code == wire.OpGetChildren2:
		w.add(o.Path, childWatch)
	}
}

// lastingKind is the kind of watch that addWatch sets.
func lastingKind(m wire.AddWatchMode) kinds {
	if m == wire.AddWatchPersistentRecursive {
		return recursiveWatch
	}
	return persistentWatch
}

// fired forgets the watches that an event used up.
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

// removedKinds is what a removal of a type of watch removes.
func removedKinds(t wire.WatcherType) kinds {
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

// setWatchesBytes is about how long a frame that sets watches may become, as in
// Java's ClientCnxn: far below what servers accept.
const setWatchesBytes = 128 << 10

// frames appends the requests that set all watches again, each small enough for
// a server, and returns how many there are. The paths go in sorted order.
func (w *watches) frames(b []byte, zxid int64) ([]byte, int) {
	n := 0
	for batch := range w.batches() {
		batch.RelativeZxid = zxid
		b = appendWatchBatch(b, batch)
		n++
	}
	return b, n
}

// batches yields the watches in portions, by one record that is used again.
func (w *watches) batches() func(yield func(*wire.SetWatches2) bool) {
	return func(yield func(*wire.SetWatches2) bool) {
		// Sorted, since the order of a map must not show in what is sent.
		batch, size := emptyBatch(), 0
		for _, path := range slices.Sorted(maps.Keys(w.paths)) {
			size += addToBatch(batch, path, w.paths[path])
			if size < setWatchesBytes {
				continue
			}
			if !yield(batch) {
				return
			}
			batch, size = emptyBatch(), 0
		}
		if size > 0 {
			yield(batch)
		}
	}
}

// emptyBatch has empty lists: a server refuses null ones.
func emptyBatch() *wire.SetWatches2 {
	return &wire.SetWatches2{
		DataWatches: []string{}, ExistWatches: []string{}, ChildWatches: []string{},
		PersistentWatches: []string{}, PersistentRecursiveWatches: []string{},
	}
}

// addToBatch adds one path's watches and returns the bytes they take.
func addToBatch(b *wire.SetWatches2, path string, k kinds) (size int) {
	add := func(kind kinds, list *[]string) {
		if k&kind != 0 {
			*list = append(*list, path)
			size += 4 + len(path)
		}
	}
	add(dataWatch, &b.DataWatches)
	add(existWatch, &b.ExistWatches)
	add(childWatch, &b.ChildWatches)
	add(persistentWatch, &b.PersistentWatches)
	add(recursiveWatch, &b.PersistentRecursiveWatches)
	return size
}

// appendWatchBatch appends a framed request. The older request is used where it
// says all, so that servers before 3.6 understand it.
func appendWatchBatch(b []byte, w *wire.SetWatches2) []byte {
	if len(w.PersistentWatches)+len(w.PersistentRecursiveWatches) > 0 {
		return wire.AppendRequest(b, wire.XidSetWatches, wire.OpSetWatches2, w)
	}
	old := &wire.SetWatches{RelativeZxid: w.RelativeZxid, DataWatches: w.DataWatches,
		ExistWatches: w.ExistWatches, ChildWatches: w.ChildWatches}
	return wire.AppendRequest(b, wire.XidSetWatches, wire.OpSetWatches, old)
}
