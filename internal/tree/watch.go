package tree

import (
	"slices"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// watchBits is the set of watches of one connection on one path. Data and exists
// watches are one kind, because both report changes of the node itself.
type watchBits uint8

const (
	dataOnce watchBits = 1 << iota
	dataPersistent
	dataRecursive
	childOnce
	childPersistent
	// dataHidden and childHidden are one-shot watches after a change that their connection may
	// not see. They report nothing more, but stay until the client removes them: otherwise
	// checkWatches, removeWatches, and the limits would reveal that the node changed.
	dataHidden
	childHidden

	dataMask  = dataOnce | dataPersistent | dataRecursive | dataHidden
	childMask = childOnce | childPersistent | childHidden
)

// hidden returns what stays of one-shot watches after a change that their connection may not
// see.
func (b watchBits) hidden() (left watchBits) {
	if b&dataOnce != 0 {
		left |= dataHidden
	}
	if b&childOnce != 0 {
		left |= childHidden
	}
	return left
}

// count returns how many watches ZooKeeper counts in b: one per table, whatever their
// kinds. The four-letter words show that number.
func (b watchBits) count() int {
	n := 0
	if b&dataMask != 0 {
		n++
	}
	if b&childMask != 0 {
		n++
	}
	return n
}

// watch is the set of watches of one connection on one path: 16 bytes, plus the
// path's entry in the connection's own set.
type watch struct {
	conn *conn
	bits watchBits
}

// watchedPaths are the paths that one connection watches, so that its removal does not
// search all watches. Nil has none.
type watchedPaths struct {
	paths   pathSet
	watches int64 // as ZooKeeper counts
	bytes   int64 // total length of the paths
}

func (w *watchedPaths) len() int { return w.set().count }

// set returns the paths, which the caller must not modify.
func (w *watchedPaths) set() *pathSet {
	if w == nil {
		return new(pathSet)
	}
	return &w.paths
}

// use returns what counts for the limits.
func (w *watchedPaths) use() (watches, bytes int64) {
	if w == nil {
		return 0, 0
	}
	return w.watches, w.bytes
}

// watchTable holds the watches by path. Paths are the texts of requests, because a
// watch may be on a node that does not exist.
//
// It combines both of ZooKeeper's tables: a connection that watches a node's data and
// its children has one entry, and a path has one list. The map does not shrink, but
// Config.MaxWatches limits its size, unlike the sum of the sizes that sets of connections had.
type watchTable struct {
	byPath     map[string][]watch
	total      int    // as ZooKeeper counts
	watchers   int    // connections with watches
	recursive  int    // entries with a recursive watch; if 0, ancestors are not searched
	bytes      int64  // total length of the paths, counted once per watching connection
	shares     shares // watches per address
	byteShares shares // bytes per address
	changes    uint64 // number of the last change; a connection is notified of each change once
}

func newWatchTable() watchTable {
	return watchTable{byPath: make(map[string][]watch), shares: make(shares), byteShares: make(shares)}
}

// find returns the index of c among the watches on path, or -1. It checks c's own set
// first, so that a new watch does not search a long list.
func (w *watchTable) find(path string, c *conn) int {
	if !c.watched.set().has(path) {
		return -1
	}
	return slices.IndexFunc(w.byPath[path], func(e watch) bool { return e.conn == c })
}

// bits returns the watches of c on path.
func (w *watchTable) bits(path string, c *conn) watchBits {
	if i := w.find(path, c); i >= 0 {
		return w.byPath[path][i].bits
	}
	return 0
}

// set sets the watches of c on path; 0 removes the entry. A new entry is appended to
// the path's list without searching it, however long it is. Changing an entry
// searches the list.
func (w *watchTable) set(path string, c *conn, bits watchBits) {
	i := w.find(path, c)
	if i < 0 {
		if bits == 0 {
			return
		}
		if c.watched == nil {
			c.watched = new(watchedPaths)
		}
		if c.watched.len() == 0 {
			w.watchers++
		}
		c.watched.paths.add(path)
		w.byPath[path] = append(w.byPath[path], watch{c, bits})
		w.account(path, c, 0, bits)
		return
	}
	list := w.byPath[path]
	w.account(path, c, list[i].bits, bits)
	list[i].bits = bits
	if bits == 0 {
		w.dropPath(path, c)
		w.store(path, slices.Delete(list, i, i+1))
	}
}

// dropPath removes a path from c's own set.
func (w *watchTable) dropPath(path string, c *conn) {
	if c.watched.paths.remove(path); c.watched.len() == 0 {
		w.watchers--
	}
}

// store sets the list of a path, or removes the path if the list is empty. A list that lost most
// of its entries does not keep their memory.
func (w *watchTable) store(path string, list []watch) {
	if len(list) == 0 {
		delete(w.byPath, path)
		return
	}
	if cap(list) > 4*len(list) {
		list = slices.Clone(list)
	}
	w.byPath[path] = list
}

// account updates the counters when the watches of c on path change from old to bits.
func (w *watchTable) account(path string, c *conn, old, bits watchBits) {
	var bytes int64
	switch {
	case old == 0 && bits != 0:
		bytes = int64(len(path))
	case old != 0 && bits == 0:
		bytes = -int64(len(path))
	}
	w.bytes += bytes
	c.watched.bytes += bytes
	w.byteShares.add(c.share, bytes)
	n := bits.count() - old.count()
	w.total += n
	c.watched.watches += int64(n)
	w.shares.add(c.share, int64(n))
	if old&dataRecursive != 0 {
		w.recursive--
	}
	if bits&dataRecursive != 0 {
		w.recursive++
	}
}

// watchesOf returns the watches of c on path, and counts the steps of the search.
func (t *Tree) watchesOf(c *conn, path string) watchBits {
	bits := t.watches.bits(path, c)
	if bits != 0 {
		t.steps += len(t.watches.byPath[path]) / lookedPerStep
	}
	return bits
}

// addWatch adds a watch of c on path to its other watches there.
func (t *Tree) addWatch(path string, c *conn, bits watchBits) {
	had := t.watchesOf(c, path)
	want := had&^bits.hidden() | bits
	if !t.checkWatchLimits(path, c, had, want) {
		return
	}
	t.watches.set(path, c, want)
	if bits&dataRecursive != 0 {
		if n := t.nodes.get(path); n != nil {
			n.ensureExtra().recursiveWatch = true
		}
	}
	t.steps += watchSteps + len(path)/textPerStep
}

// addWatchOp sets a persistent watch. The node need not exist, and the path is not
// validated. Permissions are checked for each event.
func (t *Tree) addWatchOp(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.AddWatchRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	switch q.Mode {
	case wire.AddWatchPersistent:
		t.addWatch(q.Path, c, dataPersistent|childPersistent)
	case wire.AddWatchPersistentRecursive:
		t.addWatch(q.Path, c, dataRecursive)
	default:
		return nil, wire.ErrMarshalling
	}
	return &wire.ErrorResponse{}, wire.ErrOK
}

// typeMask returns the watches that a watcher type selects.
func typeMask(typ wire.WatcherType) (watchBits, bool) {
	switch typ {
	case wire.WatcherChildren:
		return childOnce | childHidden, true
	case wire.WatcherData:
		return dataOnce | dataHidden, true
	case wire.WatcherAny:
		return dataMask | childMask, true
	case wire.WatcherPersistent:
		return dataPersistent | childPersistent, true
	case wire.WatcherPersistentRecursive:
		return dataRecursive, true
	}
	return 0, false
}

// checkWatches reports whether the connection has such a watch. Clients ask before
// they remove a watch that several listeners share.
func (t *Tree) checkWatches(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.CheckWatchesRequest
	q.Decode(r)
	mask, ok := typeMask(q.Type)
	if r.Err() != nil || !ok {
		return nil, wire.ErrMarshalling
	}
	if t.watchesOf(c, q.Path)&mask != 0 {
		return nil, wire.ErrOK
	}
	return nil, wire.ErrNoWatcher
}

// removeWatches removes such watches of the connection. As in Java no event reports
// it, because the client that asked knows.
func (t *Tree) removeWatches(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.RemoveWatchesRequest
	q.Decode(r)
	mask, ok := typeMask(q.Type)
	if r.Err() != nil || !ok {
		return nil, wire.ErrMarshalling
	}
	bits := t.watchesOf(c, q.Path)
	if bits&mask == 0 {
		return nil, wire.ErrNoWatcher
	}
	t.watches.set(q.Path, c, bits&^mask)
	return nil, wire.ErrOK
}
