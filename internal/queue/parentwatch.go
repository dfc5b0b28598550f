package queue

import (
	"maps"
	"time"
)

// The sequence numbers of two entries tell whether another entry was created in between only if
// both numbers are of one parent. While the parent is empty, the servers or another client may
// delete it, and the next client creates it with numbers that begin anew. A watch on the parent
// shows that: if the client has set it before it creates the first entry, the servers report the
// deletion before they answer the create of the second one, on the same connection. No other
// user of the session may end the watch, so this needs a session of the client's own. Servers
// do not report events to a client that may no longer read the znode: assumption A6 excludes
// that.
//
// The watch costs a request. So the client sets it only after it could have used it
// runBeforeWatch times in a row: for a lock that it alone uses (see sole.go), or for one that
// several of its acquires wait for (see follow.go).

// A parentWatch is the watch on a lock's parent, and what decides whether to set it.
type parentWatch struct {
	state parentWatchState
	req   uint64 // the request that sets the watch
	sole  soleUse
	// follows counts the positions in a row whose number directly followed that of another
	// position of this client.
	follows int
}

// parentWatchState is what is known of the watch on a lock's parent.
type parentWatchState uint8

const (
	parentUnwatched parentWatchState = iota
	parentRequested                  // the request that sets the watch is in flight
	parentWatched                    // the parent has existed since the answer
	parentUnproven                   // a watch of an earlier connection, which the session sets again
	parentRefused                    // this client may not read the parent
)

// runBeforeWatch is how often in a row the watch could have been used before the client sets
// it.
const runBeforeWatch = 3

// maxParentWatches bounds the number of locks whose parents a client watches.
const maxParentWatches = 64

// parentWatchOf returns the watch on a parent, which may not be set yet. It returns nil if the
// client may not rely on such a watch, or has too many.
func (c *Core) parentWatchOf(parent string) *parentWatch {
	if w := c.parentWatches[parent]; w != nil || !c.cfg.OwnSession {
		return w
	}
	if len(c.parentWatches) >= maxParentWatches {
		maps.DeleteFunc(c.parentWatches, func(_ string, w *parentWatch) bool {
			return w.state == parentUnwatched || w.state == parentRefused
		})
	}
	if len(c.parentWatches) >= maxParentWatches {
		return nil
	}
	if c.parentWatches == nil {
		c.parentWatches = map[string]*parentWatch{}
	}
	w := &parentWatch{}
	c.parentWatches[parent] = w
	return w
}

// watchParent sets the watch on a lock's parent, unless that was done.
func (c *Core) watchParent(parent string, w *parentWatch) {
	if w.state != parentUnwatched && w.state != parentUnproven {
		return
	}
	w.state, w.req = parentRequested, c.lastReq+1
	c.send(Request{Kind: Get, Path: parent, Watch: true}, func(_ time.Duration, r Reply) {
		switch {
		case c.parentWatches[parent] != w || w.state != parentRequested || w.req != r.ID: // the watch has fired, or was of another connection
		case r.Code == OK:
			w.state = parentWatched
		case r.Code == Refused:
			w.state = parentRefused
		default:
			delete(c.parentWatches, parent)
		}
	})
}

// createdUnderWatch records which watch on the parent was set when the position's entries were
// created: the answer to their create has just come, and the watch has not fired.
func (c *Core) createdUnderWatch(p *position) {
	if w := c.parentWatches[p.parent]; w != nil && w.state == parentWatched {
		p.watchedBy = w.req
	}
}

// sharesParent reports whether a watch proves that the entries of both positions were created
// in one parent, which was not deleted in between.
func (p *position) sharesParent(q *position) bool {
	return p.watchedBy != 0 && p.watchedBy == q.watchedBy
}

// parentDeleted handles the deletion of a lock's parent: the entries of this client are gone too. It
// watches those that would be watched later, and none of their acquires is granted before a
// quorum was asked for its entry.
func (c *Core) parentDeleted(parent string) {
	l := c.queues[parent]
	if l == nil {
		return
	}
	for _, p := range l.positions {
		for _, n := range p.nodes {
			if n.state != alive || p.acquire.swap != nil { // the outcome of a downgrade decides
				continue
			}
			c.doubt(n)
			if !n.watch.requested() {
				c.watchOwn(n)
			}
		}
	}
}

// unproveParentWatches forgets what the last connection has proven. The session sets the watches
// again on the new one whose requests were answered, so those still count.
func (c *Core) unproveParentWatches() {
	maps.DeleteFunc(c.parentWatches, func(_ string, w *parentWatch) bool {
		if w.state != parentWatched && w.state != parentUnproven {
			return true
		}
		*w = parentWatch{state: parentUnproven}
		return false
	})
}
