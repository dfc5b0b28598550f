package queue

import "time"

// A watch on the claim's own znode tells at once when somebody deletes it. A waiter
// sets one when it begins to wait, and keeps it when it is granted. A claim that did
// not wait has none at its grant: setting one takes a request, and most holds are
// short. So the core sets it when the hold has lasted for watchAfter. If the znode is
// gone by then, the answer tells, and the release of a shorter hold finds it out by
// its delete; see [Core.missing].

// watchAfter is how long a hold lasts before its znodes are watched.
const watchAfter = 100 * time.Millisecond

// unwatched is a list of holds with the times at which their znodes are to be watched.
// All holds wait for equally long, so it is in order.
type unwatched struct {
	holds []unwatchedHold
	head  int // how many of them are over or watched
}

type unwatchedHold struct {
	id ID
	at time.Duration
}

// add appends a hold, in the room of those that are over where there is enough.
func (u *unwatched) add(id ID, at time.Duration) {
	if u.head > len(u.holds)/2 {
		u.holds = u.holds[:copy(u.holds, u.holds[u.head:])]
		u.head = 0
	}
	u.holds = append(u.holds, unwatchedHold{id: id, at: at})
}

// watchAt returns when the znodes of a hold are to be watched, 0 for never, and whose.
func (c *Core) watchAt() (at time.Duration, cl *claim) {
	for u := &c.unwatched; u.head < len(u.holds); u.head++ {
		next := u.holds[u.head]
		if cl := c.claim(next.id); cl != nil {
			return next.at, cl
		}
	}
	return 0, nil
}

// watchLater has a hold's znodes watched if it lasts.
func (c *Core) watchLater(now time.Duration, id ID) { c.unwatched.add(id, now+watchAfter) }

// watchDue watches the znodes of the holds that have lasted for watchAfter. During a
// downgrade it is not known which znodes those are, so that hold waits once more.
func (c *Core) watchDue(now time.Duration) {
	for at, cl := c.watchAt(); at != 0 && at <= now; at, cl = c.watchAt() {
		c.unwatched.head++
		if cl.swap != nil {
			c.watchLater(now, cl.id)
		} else {
			c.watchOwns(cl)
		}
	}
}

// watchOwns leaves watches on the claim's own znodes, so that a waiter learns at
// once when somebody deletes one, and in the order of the wire.
func (c *Core) watchOwns(cl *claim) {
	for _, n := range cl.nodes() {
		if n.state == alive && !n.watched {
			c.watchOwn(n)
		}
	}
}

func (c *Core) watchOwn(n *node) {
	n.watched, n.wantsWatch, n.seen, n.looking = true, true, false, true
	c.send(Request{Kind: Get, Path: n.path(), Watch: true}, func(now time.Duration, r Reply) {
		n.seen, n.looking = r.Code == OK, false
		c.proven(now, n)
		cl := n.owner
		if cl == nil || n.state != alive {
			return
		}
		switch r.Code {
		case OK:
			switch {
			case n.named != byData:
			case n.same(r):
				n.czxid = r.Czxid
			default:
				c.vanished(now, n) // another has taken the name
				return
			}
			c.heed(cl, r.Data)
		case NoNode:
			c.vanished(now, n)
		case Unknown, NotApplied:
			n.watched = false
			cl.retry(now + retryPause)
		case SessionOver:
		default:
			// Where heartbeats ask a quorum about the very znode, a hold does without.
			if cl.phase != held || c.syncs() || n.named == byData {
				c.unverifiable(now, n, r.Err)
			}
		}
	})
}
