package queue

import (
	"slices"
	"strings"
	"time"
)

// makeParents creates the parents that a step's create found missing, with their
// ancestors, and repeats the step. The answer names only the first missing parent: that of
// the operation with this index, or of the only one. So it creates the parents of all
// the create's znodes.
func (c *Core) makeParents(now time.Duration, acq *acquire, nodes []*node, missing int) {
	acq.makes++
	// A refusal for another parent does not matter: that parent may exist.
	why := acq.unmade[nodes[min(max(missing, 0), len(nodes)-1)].parent]
	switch {
	case why != nil:
		c.fail(now, acq, why)
		return
	case acq.makes > maxMakes:
		c.fail(now, acq, ErrParents)
		return
	}
	acq.unmade = nil
	asked := map[string]bool{}
	for _, n := range nodes {
		// A refusal above a znode that exists or can be created does not matter: the last
		// answer on the path counts. Each position has a path of its own.
		why := new(error)
		for i := 1; i <= len(n.parent); i++ {
			if i < len(n.parent) && n.parent[i] != '/' || asked[n.parent[:i]] {
				continue
			}
			asked[n.parent[:i]] = true
			c.makeParent(n, n.parent[:i], why)
		}
	}
	c.quitUnmade(now, acq)
	c.enqueue(now, acq)
}

// quitUnmade leaves the positions whose znodes were not created. An earlier create of a fixed
// node that had no answer may still be applied, so its znode is a pending delete.
func (c *Core) quitUnmade(now time.Duration, acq *acquire) {
	var unsure, kept []*position
	for _, p := range acq.positions {
		switch {
		case len(p.nodes) == 0 || p.nodes[0].state != absent:
			kept = append(kept, p)
		case p.nodes[0].unsure:
			unsure = append(unsure, p)
		default:
			c.leaveQueue(p)
		}
	}
	acq.positions = kept
	c.abandon(now, unsure, nil, &pendingRelease{}, true, false)
}

// makeParent creates one ancestor of a znode; its parent is the last.
func (c *Core) makeParent(n *node, dir string, why *error) {
	acq, last := n.owner, dir == n.parent
	c.send(Request{Kind: Make, Path: dir, Container: !c.cfg.Persistent && !c.noContainers, Access: n.position.access, Above: acq.spec.above(dir)}, func(now time.Duration, r Reply) {
		switch r.Code {
		case OK, NodeExists:
			*why = nil
		case Unimplemented: // the create of the znode finds the parent missing again
			c.noContainers = true
		case NoNode:
			// The parent of the first one is the chroot, which zklock does not create. Further
			// down, another client has just deleted the parent again, or the servers have,
			// because it was an empty container.
			if strings.LastIndexByte(dir, '/') == 0 {
				*why = r.Err
			}
		case Refused:
			*why = r.Err
		}
		if last && *why != nil {
			if acq.unmade == nil {
				acq.unmade = map[string]error{}
			}
			acq.unmade[dir] = *why
		}
	})
}

// above reports whether a znode is above the znodes of all locks of the acquire that are at
// or below it.
func (s *Spec) above(dir string) bool {
	inside := func(lock string) bool { return dir == lock || strings.HasPrefix(dir, lock+"/") || dir == Held(lock) }
	return !slices.ContainsFunc(s.Members, func(m Member) bool { return inside(m.Path) }) &&
		!slices.ContainsFunc(s.Semaphores, func(m Semaphore) bool { return inside(m.Path) })
}

// parentOf returns the path of the parent, empty for the root.
func parentOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// baseOf returns the last level of a path.
func baseOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
