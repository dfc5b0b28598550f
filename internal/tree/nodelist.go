package tree

import (
	"iter"
	"slices"
)

// nodeList is a list of nodes of one kind in the order in which they were added.
// Deleted nodes, which have no parent any more, stay in it for a while. Each removal
// compacts a few entries, so that no removal has to inspect all of them. The entries
// are in blocks, so that no addition moves all of them.
type nodeList struct {
	full  []*[blockSize]*node // the blocks before the last one
	last  []*node             // at most blockSize entries
	count int                 // number of nodes that are in the tree
	// The entries before kept, and from next on, are nodes. Those in between are
	// free.
	kept, next int
	cursors    *nodeCursor // the traversals in progress
}

const (
	// blockSize is the number of entries in a block.
	blockSize = 1024
	// minRemoved is how many nodes of a list may be deleted before it is compacted.
	minRemoved = 8
	// compactSteps is how many entries a removal inspects.
	compactSteps = 4
)

// len returns the number of entries.
func (l *nodeList) len() int { return len(l.full)*blockSize + len(l.last) }

// entry returns the entry at i.
func (l *nodeList) entry(i int) **node {
	if block := i / blockSize; block < len(l.full) {
		return &l.full[block][i%blockSize]
	}
	return &l.last[i%blockSize]
}

// truncate removes the entries from n on, which are free.
func (l *nodeList) truncate(n int) {
	if block := n / blockSize; block < len(l.full) {
		l.last = l.full[block][:]
		clear(l.full[block:])
		l.full = l.full[:block]
	}
	l.last = l.last[:n-len(l.full)*blockSize]
}

// add appends a node that is in the tree.
func (l *nodeList) add(n *node) {
	if len(l.last) == blockSize {
		l.full = append(l.full, (*[blockSize]*node)(l.last))
		l.last = make([]*node, 0, blockSize)
	}
	l.last = append(l.last, n)
	l.count++
}

// removed records that a node of the list was deleted from the tree.
func (l *nodeList) removed() {
	if l.count--; l.count == 0 {
		clear(l.last)
		l.full, l.last, l.kept, l.next = nil, l.last[:0], 0, 0
		if cap(l.last) > 2*minRemoved {
			l.last = nil
		}
		for c := l.cursors; c != nil; c = c.other {
			c.at = 0
		}
		return
	}
	if l.next == 0 && l.len() < 2*l.count+minRemoved {
		return
	}
	for range min(compactSteps, l.len()-l.next) {
		l.compact()
	}
	if l.next == l.len() {
		l.truncate(l.kept)
		for c := l.cursors; c != nil; c = c.other {
			c.at = min(c.at, l.kept)
		}
		l.kept, l.next = 0, 0
		if cap(l.last) > 4*(l.count+minRemoved) {
			l.last = slices.Clone(l.last)
		}
	}
}

// compact moves the entry at next to kept, or removes it if its node was deleted.
func (l *nodeList) compact() {
	for c := l.cursors; c != nil; c = c.other {
		if c.at >= l.kept && c.at <= l.next {
			c.at = l.kept // the next entry to visit is the one that moves
		}
	}
	from := l.entry(l.next)
	n := *from
	*from = nil
	if n.parent != nil {
		*l.entry(l.kept) = n
		l.kept++
	}
	l.next++
}

// all yields the nodes that are in the tree. The list must not change during the
// iteration.
func (l *nodeList) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for i := range l.len() {
			if n := *l.entry(i); n != nil && n.parent != nil && !yield(n) {
				return
			}
		}
	}
}

// sort orders the nodes by creation.
func (l *nodeList) sort() {
	nodes := slices.SortedFunc(l.all(), byCreation)
	*l = nodeList{}
	for _, n := range nodes {
		l.add(n)
	}
}

// nodeCursor traverses a list that can change meanwhile. It visits the nodes that are in
// the list the whole time once, in order. It may also visit nodes that were added or
// deleted.
type nodeCursor struct {
	list  *nodeList
	at    int         // the next entry; an entry that is free means the one at list.next
	other *nodeCursor // the next cursor of the list
}

// cursor begins a traversal. The caller must call close if the list remains in use.
func (l *nodeList) cursor() *nodeCursor {
	l.cursors = &nodeCursor{list: l, other: l.cursors}
	return l.cursors
}

// visit returns the next node, or nil at the end.
func (c *nodeCursor) visit() *node {
	l := c.list
	if c.at >= l.kept && c.at < l.next {
		c.at = l.next
	}
	if c.at >= l.len() {
		return nil
	}
	c.at++
	return *l.entry(c.at - 1)
}

// close ends the traversal. It may be called more than once.
func (c *nodeCursor) close() {
	for p := &c.list.cursors; *p != nil; p = &(*p).other {
		if *p == c {
			*p = c.other
			return
		}
	}
}
