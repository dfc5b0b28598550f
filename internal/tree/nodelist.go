package tree

import (
	"iter"
	"slices"
)

// nodeList is a list of nodes of one kind in the order in which they were added.
// Deleted nodes, which have no parent any more, stay in it for a while. Each removal
// compacts a few entries, so that no removal has to inspect all of them.
type nodeList struct {
	nodes []*node
	count int // number of nodes that are in the tree
	// The entries before kept, and from next on, are nodes. Those in between are
	// free.
	kept, next int
}

const (
	// minRemoved is how many nodes of a list may be deleted before it is compacted.
	minRemoved = 8
	// compactSteps is how many entries a removal inspects.
	compactSteps = 4
)

// add appends a node that is in the tree.
func (l *nodeList) add(n *node) {
	l.nodes = append(l.nodes, n)
	l.count++
}

// removed records that a node of the list was deleted from the tree.
func (l *nodeList) removed() {
	if l.count--; l.count == 0 {
		clear(l.nodes)
		l.nodes, l.kept, l.next = l.nodes[:0], 0, 0
		if cap(l.nodes) > 2*minRemoved {
			l.nodes = nil
		}
		return
	}
	if l.next == 0 && len(l.nodes) < 2*l.count+minRemoved {
		return
	}
	for range min(compactSteps, len(l.nodes)-l.next) {
		n := l.nodes[l.next]
		l.nodes[l.next] = nil
		if n.parent != nil {
			l.nodes[l.kept] = n
			l.kept++
		}
		l.next++
	}
	if l.next == len(l.nodes) {
		l.nodes, l.kept, l.next = l.nodes[:l.kept], 0, 0
		if cap(l.nodes) > 4*(l.count+minRemoved) {
			l.nodes = slices.Clone(l.nodes)
		}
	}
}

// all yields the nodes that are in the tree. The list must not change during the
// iteration.
func (l nodeList) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, n := range l.nodes {
			if n != nil && n.parent != nil && !yield(n) {
				return
			}
		}
	}
}

// copy returns all nodes, and some that are deleted, for an iteration during which
// the list changes.
func (l nodeList) copy() []*node {
	list := make([]*node, 0, len(l.nodes))
	return append(append(list, l.nodes[:l.kept]...), l.nodes[l.next:]...)
}
