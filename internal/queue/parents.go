package queue

import (
	"strings"
	"time"
)

// makeParents makes what a step's create found missing, and what is missing above,
// then takes the step again. It makes the parents of all the create's znodes, as only
// the first that is missing is told of: the one with this index, or the only one.
func (c *Core) makeParents(now time.Duration, cl *claim, nodes []*node, missing int) {
	cl.makes++
	// What was refused, of another's parent, is no matter: that one may be there.
	why := cl.unmade[nodes[min(max(missing, 0), len(nodes)-1)].parent]
	switch {
	case why != nil:
		c.fail(now, cl, why)
		return
	case cl.makes > maxMakes:
		c.fail(now, cl, ErrParents)
		return
	}
	cl.unmade = nil
	cl.quitUnmade(c)
	asked := map[string]bool{}
	for _, n := range nodes {
		// What is refused above a znode that is there, or can be made, is no matter:
		// the last answer on the way down counts. Other places' ways are theirs.
		why := new(error)
		for i := 1; i <= len(n.parent); i++ {
			if i < len(n.parent) && n.parent[i] != '/' || asked[n.parent[:i]] {
				continue
			}
			asked[n.parent[:i]] = true
			c.makeParent(n, n.parent[:i], why)
		}
	}
	c.join(now, cl)
}

// quitUnmade gives up the places for which nothing was made.
func (cl *claim) quitUnmade(c *Core) {
	kept := cl.places[:0]
	for _, p := range cl.places {
		if len(p.nodes) > 0 && p.nodes[0].state == absent {
			c.quit(p)
		} else {
			kept = append(kept, p)
		}
	}
	cl.places = kept
}

// makeParent makes one znode on the way to a znode's parent, which is the last.
func (c *Core) makeParent(n *node, dir string, why *error) {
	cl, last := n.owner, dir == n.parent
	c.send(Request{Kind: Make, Path: dir, Container: !c.cfg.Persistent, Access: n.place.access}, func(now time.Duration, r Reply) {
		switch r.Code {
		case OK, NodeExists:
			*why = nil
		case Unimplemented:
			c.cfg.Persistent = true
		case NoNode:
			// Only what the first is to stand in, a chroot, is not ours to make.
			// Further down somebody, or the collection of empty containers,
			// has just deleted the parent again.
			if strings.LastIndexByte(dir, '/') == 0 {
				*why = r.Err
			}
		case Refused:
			*why = r.Err
		}
		if last && *why != nil {
			if cl.unmade == nil {
				cl.unmade = map[string]error{}
			}
			cl.unmade[dir] = *why
		}
	})
}

// parentOf returns the path of the znode above, empty for the root.
func parentOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// baseOf returns the last level of a path.
func baseOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
