package tree

import (
	"cmp"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// sweep removes containers that had children and have none, and TTL nodes
// without children whose data is older than their time to live, each in a
// transaction of its own (ContainerManager.checkContainers).
func (t *Tree) sweep(now Now, out *Out) {
	// A container that never had a child is left alone: its maker is about to
	// use it. What is found is not changed by removing the others: none of them
	// has children, so none is another's parent.
	var due []*node
	for n := range t.containers {
		if n.family().children == 0 && n.family().creates > 0 {
			due = append(due, n)
		}
	}
	for n := range t.ttls {
		if n.family().children == 0 && now.Wall-n.mtime > n.owner&maxTTL {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(a, b *node) int { return cmp.Compare(a.path, b.path) })
	for _, n := range due {
		t.commit(&txn{op: wire.OpDelete, path: n.path}, now, out)
	}
}
