package tree

import (
	"iter"
	"slices"
)

// nodeList has nodes of a kind in the order in which they came. Nodes that are gone,
// which have no parent any more, stay in it for a while: each removal moves a few of
// the others together, so that none has to look at all of them.
type nodeList struct {
	nodes []*node
	live  int // how many of them are in the tree
	// Up to kept, and from next on, are nodes. What is between them is free.
	kept, next int
}

const (
	// spareNodes is how many of a list may be gone before it is tidied.
	spareNodes = 8
	// tidyNodes is how many entries a removal looks at.
	tidyNodes = 4
)

// add appends a node that is in the tree.
func (l *nodeList) add(n *node) {
	l.nodes = append(l.nodes, n)
	l.live++
}

// removed notes that a node of the list has left the tree.
func (l *nodeList) removed() {
	if l.live--; l.live == 0 {
		clear(l.nodes)
		l.nodes, l.kept, l.next = l.nodes[:0], 0, 0
		if cap(l.nodes) > 2*spareNodes {
			l.nodes = nil
		}
		return
	}
	if l.next == 0 && len(l.nodes) < 2*l.live+spareNodes {
		return
	}
	for range min(tidyNodes, len(l.nodes)-l.next) {
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
		if cap(l.nodes) > 4*(l.live+spareNodes) {
			l.nodes = slices.Clone(l.nodes)
		}
	}
}

// all yields the nodes that are in the tree. The list must not change meanwhile.
func (l nodeList) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, n := range l.nodes {
			if n != nil && n.parent != nil && !yield(n) {
				return
			}
		}
	}
}

// copy is a list of all nodes, and of some that are gone, for a walk that takes
// longer than the list stays as it is.
func (l nodeList) copy() []*node {
	list := make([]*node, 0, len(l.nodes))
	return append(append(list, l.nodes[:l.kept]...), l.nodes[l.next:]...)
}
