package tree

import "slices"

// watchBits are the watches one connection has on one path. Data and exists
// watches are one kind: both are told of the node itself.
type watchBits uint8

const (
	dataOnce watchBits = 1 << iota
	dataPersistent
	dataRecursive
	childOnce
	childPersistent
	childRecursive // with Compat38 only, where it never sees a list of children

	dataMask  = dataOnce | dataPersistent | dataRecursive
	childMask = childOnce | childPersistent | childRecursive
	recursive = dataRecursive | childRecursive
)

// count is how many watches ZooKeeper counts in them: one in each of its tables,
// whatever their kind. The four-letter words show that number.
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

// watch is what one connection has on one path: 16 bytes, plus the path's entry
// in the connection's own set.
type watch struct {
	conn *conn
	bits watchBits
}

// watchTable holds the watches by path. Paths are the text of the requests: a
// watch may be on a node that does not exist.
//
// Both of ZooKeeper's tables are in one: a connection that watches a node's data
// and its children has one entry, and a path one list.
type watchTable struct {
	byPath    map[string][]watch
	total     int    // as ZooKeeper counts
	watchers  int    // connections that have any
	recursive int    // entries with a recursive watch; without any, ancestors need no look
	bytes     int64  // length of the paths, once for each connection that watches one
	shares    shares // the paths watched by each address, once for each connection
	changes   uint64 // numbers the changes that fire, so that each is told once
}

func newWatchTable() watchTable {
	return watchTable{byPath: make(map[string][]watch), shares: make(shares)}
}

// find returns the place of c among the watches on path, -1 if it has none. It
// asks c's own set first, so that a newcomer does not search a long list.
func (w *watchTable) find(path string, c *conn) int {
	if _, ok := c.watched[path]; !ok {
		return -1
	}
	return slices.IndexFunc(w.byPath[path], func(e watch) bool { return e.conn == c })
}

// bits returns the watches c has on path.
func (w *watchTable) bits(path string, c *conn) watchBits {
	if i := w.find(path, c); i >= 0 {
		return w.byPath[path][i].bits
	}
	return 0
}

// set makes bits the watches of c on path; none takes the entry out. A new entry
// goes to the end of the path's list and costs no search through it, however
// many watch the same node; changing one does.
func (w *watchTable) set(path string, c *conn, bits watchBits) {
	i := w.find(path, c)
	if i < 0 {
		if bits == 0 {
			return
		}
		if c.watched == nil {
			c.watched = make(map[string]struct{})
		}
		if len(c.watched) == 0 {
			w.watchers++
		}
		c.watched[path] = struct{}{}
		w.shares.add(c.share, 1)
		w.byPath[path] = append(w.byPath[path], watch{c, bits})
		w.account(path, 0, bits)
		return
	}
	list := w.byPath[path]
	w.account(path, list[i].bits, bits)
	list[i].bits = bits
	if bits == 0 {
		w.dropPath(path, c)
		w.store(path, slices.Delete(list, i, i+1))
	}
}

// dropPath takes a path out of c's own set.
func (w *watchTable) dropPath(path string, c *conn) {
	if delete(c.watched, path); len(c.watched) == 0 {
		w.watchers--
	}
	w.shares.add(c.share, -1)
}

// store puts the list of a path back, or the path out of the table.
func (w *watchTable) store(path string, list []watch) {
	if len(list) == 0 {
		delete(w.byPath, path)
		return
	}
	w.byPath[path] = list
}

// account keeps the counters when an entry on path changes from old to bits.
func (w *watchTable) account(path string, old, bits watchBits) {
	switch {
	case old == 0 && bits != 0:
		w.bytes += int64(len(path))
	case old != 0 && bits == 0:
		w.bytes -= int64(len(path))
	}
	w.total += bits.count() - old.count()
	if old&recursive != 0 {
		w.recursive--
	}
	if bits&recursive != 0 {
		w.recursive++
	}
}

// addWatch gives c a watch beside those it has on path; with Compat38 it takes
// the place of another kind in the same of ZooKeeper's two tables.
func (t *Tree) addWatch(path string, c *conn, bits watchBits) {
	had := t.watches.bits(path, c)
	if !t.roomForWatch(path, c, had, had|bits) {
		return
	}
	if t.cfg.Compat38 {
		for _, table := range []watchBits{dataMask, childMask} {
			if bits&table != 0 {
				had &^= table
			}
		}
	}
	t.watches.set(path, c, had|bits)
	if bits&recursive != 0 {
		if n := t.nodes.get(path); n != nil {
			n.own().hears = true
		}
	}
	t.steps += watchSteps + len(path)/textPerStep
}
