package queue

import (
	"math"
	"slices"
	"strings"
	"time"
)

// role is what a place is for.
type role uint8

const (
	member role = iota // in a queue of contenders
	gate               // in the queue for a semaphore's gate
	leases             // among a semaphore's permits
	fixed              // a node lock's one znode
)

// A place is where a claim stands at one lock: its entry there, which is one
// znode, or two in a mixed queue, or as many as permits are wanted; and who is
// ahead of it.
//
// A claim joins a queue with its creates, lists it once, and from then on keeps
// its own list of who is ahead, since that can only shrink.
type place struct {
	claim  *claim
	parent string // the znode whose children are the queue
	names  Names
	sem    *Semaphore // of a gate or leases
	nodes  []*node
	were   []string // the names of its entries before a downgrade
	behind *place   // the client's own place that it joined behind, instead of a listing

	ahead   []Entry // who was ahead when it listed, less who has gone since
	blocker string  // whom it watches
	wait    *wait   // nil as long as nobody was in the way
	access  Access  // of its parent
	limit   *limit  // of leases: what says how many permits others hold to

	delay  time.Duration
	record *node                    // what others see when this claim vanishes; nil without delay
	seen   map[string]time.Duration // uncleared records of others, and when they were first seen

	// What is small stands together: thousands of locks may be held.
	role    role
	kind    Kind
	writer  bool
	beside  bool
	over    bool // the claim has left it
	handed  bool // and its owner had ended with it
	clear   bool // nothing is ahead that blocks
	alone   bool // nothing at all was when it was cleared, as an exclusive place
	apart   bool // its listings are not to be joined with others
	loose   bool // its list was taken from a place that had not proven it, and did not keep it
	ranging bool // a listing is under way though the blocker is watched; see [Core.foresee]
	unseen  bool // a look at the blocker was not answered, so that no watch may stand
	pending bool // what is under way proves the place that it is behind to have been there
	waited  bool // somebody was ahead that blocks
	lent    bool // another's list goes on in the room of this one's
	listing bool // a listing is under way, or what has to follow one
	listed  bool // the last one was read
	relist  bool // an event alone grants nothing here
	agreed  bool // the limit was compared with one's own
	dated   bool // the records were asked since when others have seen them
}

// A wait is what a place has only because somebody is, or was, in its way.
type wait struct {
	told   string          // of which blocker it told
	vetted map[string]bool // whose data showed that they heed readers

	from     time.Duration // since when it waits
	ahead    int           // how many were ahead then, 0 if it does not wait yet
	rangeAt  time.Duration // when to list ahead of time, 0 for never
	foreseen int           // how many such listings there were
}

// waiting returns the place's wait, to be changed.
func (p *place) waiting() *wait {
	if p.wait == nil {
		p.wait = &wait{}
	}
	return p.wait
}

// look asks who is in the queue.
func (c *Core) look(p *place) {
	p.listing, p.listed = true, false
	p.ranging = false
	switch {
	case p.role == fixed:
		c.lookFixed(p)
	case p.role == leases:
		c.count(p, false)
	case p.delay > 0:
		c.lookAtRecords(p)
	default:
		c.send(Request{Kind: List, Path: p.parent, Join: !p.apart}, func(now time.Duration, r Reply) {
			if c.answers(now, p, r) {
				c.listed(now, p, r.Children)
			}
		})
	}
}

// answers reports whether a listing of the place's queue was answered with its
// children; if not, it does what follows.
func (c *Core) answers(now time.Duration, p *place, r Reply) bool {
	if p.over || p.claim.phase != working {
		return false
	}
	p.listing = false
	switch r.Code {
	case OK:
		return true
	case NoNode:
		c.gone(now, p.nodes[0])
	case Unknown, NotApplied:
		p.claim.retry(now + retryPause)
	case Undone:
		p.apart = true
		c.look(p)
	case SessionOver: // the session's own news follows, and parks the claim
	default:
		c.fail(now, p.claim, r.Err)
	}
	return false
}

// listed takes a listing that was read after the place's own creates.
func (c *Core) listed(now time.Duration, p *place, children []string) {
	c.loosen(p)
	p.listed, p.behind, p.loose = true, nil, false
	l := p.names.sortUpTo(children, p.last())
	for _, n := range p.nodes {
		if !slices.ContainsFunc(l.Queue, func(e Entry) bool { return e.Name == n.name }) {
			c.gone(now, n)
			return
		}
	}
	if len(l.Malformed) > 0 {
		c.fail(now, p.claim, ErrExhausted)
		return
	}
	// The znodes of one place have numbers in a row.
	i := slices.IndexFunc(l.Queue, p.owns)
	p.ahead = slices.Clone(l.Queue[:i])
	c.discount(p)
	p.reckon()
	if p.vets() && c.vet(now, p, l.Queue) {
		return
	}
	c.line(now, p)
}

// last is the highest number of an entry that a listing has to tell of.
func (p *place) last() int64 {
	e, class := p.names.Parse(p.nodes[len(p.nodes)-1].name)
	if class != Contender || p.vets() { // who is behind as well
		return math.MaxInt64
	}
	return e.Seq
}

func (p *place) owns(e Entry) bool {
	return slices.ContainsFunc(p.nodes, func(n *node) bool { return n.name == e.Name })
}

// vets reports whether there are recipes that do not wait for the place's entries, so
// that it is not to be granted beside theirs.
func (p *place) vets() bool {
	if p.kind == Shared {
		return !p.beside
	}
	return Entry{Layout: WriteLock}.Overlooks(p.names, p.kind, p.writer)
}

// vet looks at entries which may be of a recipe that does not wait for the place's:
// their data tell, but for those that ask for a lock back, which tell nothing of who
// holds it. Nothing is granted beside such, whether they are ahead or behind.
// It reports whether it has to wait for answers.
func (c *Core) vet(now time.Duration, p *place, queue []Entry) bool {
	left, again := 0, false
	for _, e := range queue {
		if !e.Overlooks(p.names, p.kind, p.writer) || p.wait != nil && p.wait.vetted[e.Name] {
			continue
		}
		left++
		c.send(Request{Kind: Get, Path: p.parent + "/" + e.Name}, func(now time.Duration, r Reply) {
			if p.over || p.claim.phase != working {
				return
			}
			left--
			switch r.Code {
			case OK:
				if c.cfg.Ours == nil || !c.cfg.Ours(r.Data) {
					c.fail(now, p.claim, p.overlooked())
					return
				}
				w := p.waiting()
				if w.vetted == nil {
					w.vetted = map[string]bool{}
				}
				w.vetted[e.Name] = true
			case NoNode:
				again = true // the listing is old by now
			case Unknown, NotApplied:
				p.claim.retry(now + retryPause)
				p.listing = false
				left = -1 // list again
				return
			case SessionOver:
				return
			default:
				c.fail(now, p.claim, r.Err)
				return
			}
			switch {
			case left == 0 && again:
				c.look(p)
			case left == 0:
				p.listing = false
				c.line(now, p)
			}
		})
	}
	p.listing = left > 0
	return p.listing
}

// overlooked is why a place is not granted beside another library's entries.
func (p *place) overlooked() error {
	if p.kind == Exclusive {
		return ErrWriteLock
	}
	return ErrForeign
}

// line puts the claim where the place's list of who is ahead says.
func (c *Core) line(now time.Duration, p *place) {
	cl := p.claim
	b, blocked := Blocker(p.kind, p.ahead)
	switch {
	case !blocked && !p.founded():
		c.prove(p)
	case !blocked && c.delayed(now, p):
	case !blocked:
		c.clear(now, p)
	case cl.spec.Try && p.role == gate:
		c.tryGate(p, b.Name)
	case cl.spec.Try && c.lockedByOthers(p):
		c.fail(now, cl, ErrLocked)
	case p.ranging && b.Name == p.blocker && !p.unseen: // the watch stands
		cl.retry(now + c.lookAgain())
		c.foresee(now, p)
	default:
		p.blocker, p.waited = b.Name, true
		p.waits(now)
		c.watchOwns(cl)
		c.await(now, p)
		c.foresee(now, p)
		if cl.spec.Try && !c.leaving(p.parent, b.Name) {
			cl.retry(now + retryPause) // whose it is will be known in a moment
		}
	}
}

// lockedByOthers reports whether anybody but this client is in the way. A znode
// of its own that is on its way out, such as that of a create whose answer was
// lost, is waited for even by a try; one that can't be deleted is not.
func (c *Core) lockedByOthers(p *place) bool {
	_, blocked := Blocker(p.kind, slices.DeleteFunc(slices.Clone(p.ahead), func(e Entry) bool {
		return c.leaving(p.parent, e.Name) || c.sought(p.parent, e.Name)
	}))
	return blocked
}

// sought reports whether a child may be a doomed znode of this client's for which
// it is still searching, as its name does not tell.
func (c *Core) sought(parent, name string) bool {
	return slices.ContainsFunc(c.doomed, func(n *node) bool {
		return n.parent == parent && n.name == "" && n.named == byData && strings.HasPrefix(name, n.prefix)
	})
}

// leaving reports whether a child is a doomed znode of this client's.
func (c *Core) leaving(parent, name string) bool {
	return slices.ContainsFunc(c.doomed, func(n *node) bool {
		if n.parent != parent || n.refused {
			return false
		}
		return n.name == name || n.name == "" && n.named == byGUID && strings.HasPrefix(name, n.prefix)
	})
}

// watchBlocker leaves a watch on the entry that is waited for. It reads the
// znode rather than asking whether it exists: of a missing znode that leaves no
// watch behind.
func (c *Core) watchBlocker(now time.Duration, p *place) {
	name := p.blocker
	p.unseen = false
	p.claim.retry(now + c.lookAgain())
	c.send(Request{Kind: Get, Path: p.parent + "/" + name, Watch: true}, func(now time.Duration, r Reply) {
		if p.over || p.blocker != name {
			return
		}
		switch r.Code {
		case OK:
			if !p.struck(name) {
				c.tell(p, p.parent+"/"+name, len(p.ahead), r.Data)
			}
		case NoNode:
			c.strike(now, p, name)
		case Unknown, NotApplied:
			p.unseen = true
			p.claim.retry(now + retryPause)
		case SessionOver:
		default:
			c.fail(now, p.claim, r.Err)
		}
	})
}

// tell signals once behind which znode the claim waits.
func (c *Core) tell(p *place, path string, ahead int, data []byte) {
	if w := p.waiting(); w.told != path {
		w.told = path
		c.signal(Signal{ID: p.claim.id, Kind: Waiting, Ahead: ahead, Blocker: path, Data: data})
	}
}

// lookAgain returns after how long a waiter looks again, in case a watch was lost,
// or came to nothing: servers tell nobody of the end of a znode that he may not
// read. It is at most two session timeouts.
func (c *Core) lookAgain() time.Duration {
	pause := recheckPause
	if t := c.deadline.timeout; t > 0 {
		pause = min(pause, t*8/5)
	}
	return time.Duration(float64(pause) * (0.75 + c.cfg.Jitter()/2))
}

// strike takes the watched entry, which is gone, off the place's list. What was
// ahead can only shrink, so an empty list is a grant; but two things need a new
// listing: whether others on the list are gone too, and, where a writer was
// ahead, whether it left a reader with the same sequence number behind.
func (c *Core) strike(now time.Duration, p *place, name string) {
	p.without(func(e Entry) bool { return e.Name == name })
	p.blocker = ""
	_, blocked := Blocker(p.kind, p.ahead)
	switch {
	case !blocked && !p.relist:
		c.line(now, p)
	case p.ranging:
		// What was asked for tells the rest.
	default:
		c.look(p)
	}
}

// proceedAt picks the claim up at one of its places.
func (c *Core) proceedAt(now time.Duration, p *place) {
	switch {
	case p.listing || p.clear || len(p.nodes) == 0 || p.nodes[0].state == creating:
	case p.role == fixed:
		c.proceedFixed(now, p)
	case p.role == leases:
		c.count(p, true)
	case c.ranges(now, p):
	case p.blocker == "" || p.claim.spec.Try:
		p.blocker = "" // what a try waits for is about to go, or else it fails
		c.look(p)
	default:
		c.watchOwns(p.claim)
		c.await(now, p)
		if at := p.waiting().rangeAt; at != 0 {
			p.claim.retry(at)
		}
	}
}

// vanished takes it that a znode of one's own is not there any more.
func (c *Core) vanished(now time.Duration, n *node) {
	if n.owner != nil && n.owner.swap != nil {
		n.owner.swap.missed, n.seen = true, false
		return // a downgrade is under way: its outcome will tell
	}
	c.gone(now, n)
}
