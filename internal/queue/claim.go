package queue

import (
	"path"
	"slices"
	"strings"
	"time"
)

// phase is how far a claim has come.
type phase uint8

const (
	parked  phase = iota // waits for a session, or for its time to try again
	joining              // create and listing are under way
	waiting              // has a place in the queue, and watches its blocker
	ready                // nothing is ahead; to be granted when all is proven
	held                 // granted
	done                 // off the list
)

// A claim is one Acquire, and then the hold that came of it.
type claim struct {
	id   ID
	path string
	kind Kind
	try  bool
	data []byte

	phase   phase
	node    *node         // its entry; nil while it has none
	retryAt time.Duration // when to look at it again; 0 for never
	rounds  int           // how often its znode was deleted while it waited
	makes   int           // how often in a row its parents had to be made
	makeErr error         // why a parent could not be made

	listing bool    // a listing is under way
	ahead   []Entry // who was ahead when it listed, less who has gone since
	writers bool    // among them was a writer, so an event alone grants nothing

	blocker    string // whom it watches
	told       string // of which blocker it told
	ownWatched bool
	unproven   bool // its entry may have been deleted without a word; ask before a grant
}

const (
	retryPause   = 100 * time.Millisecond
	recheckPause = 30 * time.Second // a lost watch costs at most this
	maxMakes     = 16
)

// park makes the claim begin anew with the next connection or retry.
func (cl *claim) park() {
	cl.phase, cl.node = parked, nil
	cl.ahead, cl.writers, cl.listing = nil, false, false
	cl.blocker, cl.ownWatched, cl.unproven = "", false, false
}

// join asks for a place in the queue and for the listing that shows who is
// ahead, in one go: the server carries a session's requests out in order.
func (c *Core) join(now time.Duration, cl *claim) {
	n := &node{parent: cl.path, prefix: Prefix(c.cfg.GUID()), owner: cl, session: c.session.Session}
	cl.node = n
	cl.phase = joining
	c.send(Request{Kind: Create, Path: cl.path + "/" + n.prefix, Data: cl.data}, func(now time.Duration, r Reply) {
		c.created(now, n, r)
	})
	c.list(cl)
}

// created takes a create's outcome. The listing's answer, right behind it,
// moves the claim on.
func (c *Core) created(now time.Duration, n *node, r Reply) {
	if n.state != creating {
		c.strayed(now, n, r)
		return
	}
	cl := n.owner
	switch r.Code {
	case OK:
		n.state, n.name, n.czxid = alive, path.Base(r.Path), r.Czxid
		c.answered(r)
		if cl == nil {
			c.dispose(now, n)
			return
		}
		cl.makes = 0
		if err := c.inspectOwn(cl, r); err != nil {
			c.fail(now, cl, err)
		}
		return
	case Unknown:
		n.state = unknown
		if cl == nil {
			c.dispose(now, n)
			return
		}
		cl.park()
		cl.retryAt = now + retryPause
		c.doom(now, n, 0)
		return
	}
	n.state = absent
	if cl == nil {
		c.finish(n, nil)
		return
	}
	switch r.Code {
	case NoNode: // the listing's answer is next, and finds the znode absent
	case NotApplied, SessionOver:
		cl.park()
		cl.retryAt = now + retryPause
	default:
		c.fail(now, cl, r.Err)
	}
}

// strayed takes the outcome of a create whose session was over before it came.
// The goroutine that was to send it may have stood still until the next session
// had begun: what was made there is nobody's, and would block the lock for as
// long as that session lives.
func (c *Core) strayed(now time.Duration, n *node, r Reply) {
	switch r.Code {
	case OK:
		n.state, n.name = alive, path.Base(r.Path)
	case Unknown:
		n.state = unknown
	default:
		return
	}
	n.owner, n.report = nil, 0
	c.doomed = append(c.doomed, n)
	c.dispose(now, n)
}

// inspectOwn looks at what the server made: fail closed on what can't be.
func (c *Core) inspectOwn(cl *claim, r Reply) error {
	n := cl.node
	e, class := ParseName(n.name)
	switch {
	case class != Contender || e.Seq >= SequenceLimit:
		return ErrExhausted
	case r.Owner != n.session || n.session != c.session.Session:
		return ErrOwner
	case e.Seq >= SequenceWarning:
		c.signal(Signal{ID: cl.id, Kind: NearLimit, Token: e.Seq})
	}
	return nil
}

// list asks who is in the queue.
func (c *Core) list(cl *claim) {
	n := cl.node
	cl.listing = true
	c.send(Request{Kind: List, Path: cl.path}, func(now time.Duration, r Reply) {
		if cl.node == n && cl.phase == joining {
			cl.listing = false
			c.listed(now, cl, r)
		}
	})
}

// listed takes a listing that was read after the claim's own create.
func (c *Core) listed(now time.Duration, cl *claim, r Reply) {
	if cl.node.state == absent {
		c.makeParents(now, cl)
		return
	}
	if cl.node.state != alive {
		return
	}
	switch r.Code {
	case OK:
		l := Sort(r.Children)
		ahead, found := l.Ahead(cl.node.name)
		if !found {
			c.gone(now, cl.node)
			return
		}
		if len(l.Malformed) > 0 {
			c.fail(now, cl, ErrExhausted)
			return
		}
		cl.ahead = slices.Clone(ahead)
		cl.writers = cl.kind == Exclusive && slices.ContainsFunc(ahead, Entry.Writer)
		c.line(now, cl)
	case NoNode:
		c.gone(now, cl.node)
	case Unknown, NotApplied:
		cl.retryAt = now + retryPause
	case SessionOver: // the session's own news follows, and parks the claim
	default:
		c.fail(now, cl, r.Err)
	}
}

// makeParents makes the lock's znode and what is missing above it, then joins.
func (c *Core) makeParents(now time.Duration, cl *claim) {
	cl.makes++
	switch {
	case cl.makeErr != nil:
		c.fail(now, cl, cl.makeErr)
		return
	case cl.makes > maxMakes:
		c.fail(now, cl, ErrParents)
		return
	}
	cl.park()
	for i := 1; i <= len(cl.path); i++ {
		if i == len(cl.path) || cl.path[i] == '/' {
			c.makeParent(cl, cl.path[:i])
		}
	}
	c.join(now, cl)
}

func (c *Core) makeParent(cl *claim, dir string) {
	c.send(Request{Kind: Make, Path: dir, Container: !c.cfg.Persistent}, func(now time.Duration, r Reply) {
		switch r.Code {
		case OK, NodeExists:
			cl.makeErr = nil
		case Unimplemented:
			c.cfg.Persistent = true
		case NoNode:
			// Only what the first is to stand in, a chroot, is not ours to make.
			// Further down somebody, or the collection of empty containers,
			// has just deleted the parent again.
			if strings.LastIndexByte(dir, '/') == 0 {
				cl.makeErr = r.Err
			}
		case Refused:
			cl.makeErr = r.Err
		}
	})
}

// line puts the claim where its list of who is ahead says.
func (c *Core) line(now time.Duration, cl *claim) {
	b, blocked := Blocker(cl.kind, cl.ahead)
	switch {
	case !blocked:
		cl.phase, cl.blocker = ready, ""
		c.dirty = true
	case cl.try && c.lockedByOthers(cl):
		c.fail(now, cl, ErrLocked)
	default:
		cl.phase, cl.blocker = waiting, b.Name
		if !cl.ownWatched {
			c.watchOwn(cl)
		}
		c.watchBlocker(now, cl)
	}
}

// lockedByOthers reports whether anybody but this client is in the way. A znode
// of its own that is on its way out, such as that of a create whose answer was
// lost, is waited for even by a try; one that can't be deleted is not.
func (c *Core) lockedByOthers(cl *claim) bool {
	others := slices.DeleteFunc(slices.Clone(cl.ahead), func(e Entry) bool {
		return slices.ContainsFunc(c.doomed, func(n *node) bool {
			return n.parent == cl.path && !n.refused && strings.HasPrefix(e.Name, n.prefix)
		})
	})
	_, blocked := Blocker(cl.kind, others)
	return blocked
}

// watchOwn leaves a watch on the claim's own entry, so that a waiter learns at
// once when somebody deletes it, and in the order of the wire.
func (c *Core) watchOwn(cl *claim) {
	n := cl.node
	cl.ownWatched = true
	c.send(Request{Kind: Get, Path: n.path()}, func(now time.Duration, r Reply) {
		if cl.node != n {
			return
		}
		switch r.Code {
		case OK:
		case NoNode:
			c.gone(now, n)
		case Unknown, NotApplied:
			cl.ownWatched = false
			cl.retryAt = now + retryPause
		case SessionOver:
		default:
			if cl.phase != held {
				c.fail(now, cl, r.Err)
			}
		}
	})
}

// watchBlocker leaves a watch on the entry that is waited for. It reads the
// znode rather than asking whether it exists: of a missing znode that leaves no
// watch behind.
func (c *Core) watchBlocker(now time.Duration, cl *claim) {
	name := cl.blocker
	cl.retryAt = now + time.Duration(float64(recheckPause)*(0.75+c.cfg.Jitter()/2))
	c.send(Request{Kind: Get, Path: cl.path + "/" + name}, func(now time.Duration, r Reply) {
		if cl.phase != waiting || cl.blocker != name {
			return
		}
		switch r.Code {
		case OK:
			if cl.told != name {
				cl.told = name
				c.signal(Signal{ID: cl.id, Kind: Waiting, Ahead: len(cl.ahead), Blocker: name, Data: r.Data})
			}
		case NoNode:
			c.strike(now, cl, name)
		case Unknown, NotApplied:
			cl.retryAt = now + retryPause
		case SessionOver:
		default:
			c.fail(now, cl, r.Err)
		}
	})
}

// strike takes the watched entry, which is gone, off the claim's list. What was
// ahead can only shrink, so an empty list is a grant; but two things need a new
// listing: whether others on the list are gone too, and, where a writer was
// ahead, whether it left a reader with the same sequence number behind.
func (c *Core) strike(now time.Duration, cl *claim, name string) {
	cl.ahead = slices.DeleteFunc(cl.ahead, func(e Entry) bool { return e.Name == name })
	cl.blocker, cl.retryAt = "", 0
	if _, blocked := Blocker(cl.kind, cl.ahead); !blocked && !cl.writers {
		c.line(now, cl)
		return
	}
	cl.phase = joining
	c.list(cl)
}

// proceed picks a claim up where it stands: on a new connection, or when its
// time to try again has come.
func (c *Core) proceed(now time.Duration, cl *claim) {
	switch cl.phase {
	case parked:
		c.join(now, cl)
	case joining:
		if cl.node.state == alive && !cl.listing {
			c.list(cl)
		}
	case waiting:
		if !cl.ownWatched {
			c.watchOwn(cl)
		}
		c.watchBlocker(now, cl)
	case ready, held:
		if !cl.ownWatched && cl.blocker != "" {
			c.watchOwn(cl)
		}
	}
}

// settle grants what is ready and proven. Everything the connection had brought
// is known by now.
func (c *Core) settle(now time.Duration) {
	if !c.dirty || !c.connected() {
		return
	}
	c.dirty, c.beat.hurry = false, false
	margin := c.session.Timeout / 8
	for _, cl := range c.claims {
		if cl.phase != ready {
			continue
		}
		if cl.unproven || c.beat.jeopardy || c.deadline.Ahead(now) < margin {
			c.beat.hurry = true
			continue
		}
		cl.phase, cl.retryAt = held, 0
		n := cl.node
		c.signal(Signal{ID: cl.id, Kind: Granted, Token: n.czxid, Node: n.path(), Session: n.session})
	}
	c.heartbeat(now)
}

// gone says that a znode was deleted by somebody else.
func (c *Core) gone(now time.Duration, n *node) {
	if n.state == absent {
		return
	}
	cl := n.owner
	if cl == nil {
		c.finish(n, nil)
		return
	}
	n.state = absent
	if cl.phase == held {
		cl.node = nil
		c.remove(cl)
		c.signal(Signal{ID: cl.id, Kind: Lost, Err: ErrGone})
		return
	}
	cl.park()
	cl.rounds++
	if cl.rounds <= 2 && c.connected() {
		c.join(now, cl)
	} else {
		cl.retryAt = now + retryPause
	}
}

// lose ends a hold that is no longer safe. Its znode may well be there still.
func (c *Core) lose(now time.Duration, cl *claim, why error) {
	c.leave(now, cl, 0)
	c.signal(Signal{ID: cl.id, Kind: Lost, Err: why})
}

// fail ends a claim that can't be granted.
func (c *Core) fail(now time.Duration, cl *claim, err error) {
	c.leave(now, cl, 0)
	c.signal(Signal{ID: cl.id, Kind: Failed, Err: err})
}

// leave takes the claim off the list and gives its znode up. report is the ID
// whose Released is due, or 0.
func (c *Core) leave(now time.Duration, cl *claim, report ID) {
	n := cl.node
	cl.node = nil
	c.remove(cl)
	switch {
	case n != nil:
		c.doom(now, n, report)
	case report != 0:
		c.signal(Signal{ID: report, Kind: Released})
	}
}
