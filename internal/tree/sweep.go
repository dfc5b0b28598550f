package tree

import (
	"github.com/zklock/zklock/internal/wire"
)

// sweepBytes is how many bytes of records one call of Tick may make of what it
// sweeps, give or take one. All of them are one batch to the log, which has no
// room for those of a million long paths.
const sweepBytes = 4 << 20

// sweep removes containers that had children and have none, or were never used for too
// long, and TTL nodes without children whose data is older than their time to live, each in a
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
		if n.parent == nil || !t.isDue(n, now) {
			continue
		}
		path := n.path()
		t.commit(&txn{op: wire.OpDelete, path: path}, now, out)
		size += len(path) + 32
	}
}

// isDue reports whether a container or TTL node is to be swept. A container that never
// had a child is left alone for as long as Config.NeverUsed says: its maker is about to
// use it.
func (t *Tree) isDue(n *node, now Now) bool {
	r := n.rare()
	if r.children > 0 {
		return false
	}
	unchanged := now.Wall - r.mtime
	if kindOf(n.owner) == container {
		return r.creates > 0 || t.cfg.NeverUsed > 0 && unchanged > t.cfg.NeverUsed
	}
	return unchanged > n.owner&maxTTL
}
