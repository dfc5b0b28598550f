package tree

import (
	"cmp"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// sweepBytes is how many bytes of records one call of Tick may make of what it
// sweeps, give or take one. All of them are one batch to the log, which has no
// room for those of a million long paths.
const sweepBytes = 4 << 20

// sweep removes containers that had children and have none, and TTL nodes
// without children whose data is older than their time to live, each in a
// transaction of its own (ContainerManager.checkContainers). What one call has no
// time for is left in t.sweeping for the next.
func (t *Tree) sweep(now Now, out *Out) {
	if len(t.sweeping) == 0 {
		t.sweeping = t.due(now)
	}
	for size := 0; len(t.sweeping) > 0 && size < sweepBytes; {
		n := t.sweeping[0]
		t.sweeping[0], t.sweeping = nil, t.sweeping[1:]
		// It may have got a child since, or be gone and another in its place.
		path := n.path()
		if t.nodes.get(path) != n || !n.due(now) {
			continue
		}
		t.commit(&txn{op: wire.OpDelete, path: path}, now, out)
		size += len(path) + 32
	}
}

// due lists what is to be swept, by path. What is found is not changed by removing
// the others: none of them has children, so none is another's parent.
func (t *Tree) due(now Now) []*node {
	var list []*node
	for _, kind := range []map[*node]struct{}{t.containers, t.ttls} {
		for n := range kind {
			if n.due(now) {
				list = append(list, n)
			}
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.path(), b.path()) })
	return list
}

// due reports whether a container or TTL node is to be swept. A container that
// never had a child is left alone: its maker is about to use it.
func (n *node) due(now Now) bool {
	r := n.rare()
	if kindOf(n.owner) == container {
		return r.children == 0 && r.creates > 0
	}
	return r.children == 0 && now.Wall-r.mtime > n.owner&maxTTL
}
