package tree

import (
	"github.com/zklock/zklock/internal/wire"
)

// sweepBytes is how many bytes of records one call of Tick may make of what it
// sweeps, give or take one. All of them are one batch to the log, which has no
// room for those of a million long paths.
const sweepBytes = 4 << 20

// sweep removes containers that had children and have none, and TTL nodes
// without children whose data is older than their time to live, each in a
// transaction of its own (ContainerManager.checkContainers), in the order of their
// creation. What one call has no time for is left in t.sweeping for the next.
func (t *Tree) sweep(now Now, out *Out) {
	if len(t.sweeping) == 0 {
		t.sweeping = append(t.containers.copy(), t.ttls.copy()...)
	}
	for size := 0; len(t.sweeping) > 0 && size < sweepBytes && !t.exhausted(); {
		n := t.sweeping[0]
		t.sweeping[0], t.sweeping = nil, t.sweeping[1:]
		t.steps++
		// It may have got a child since, or be gone and another in its place.
		if n.parent == nil || !n.due(now) {
			continue
		}
		path := n.path()
		t.commit(&txn{op: wire.OpDelete, path: path}, now, out)
		size += len(path) + 32
	}
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
