package queue

import (
	"slices"
	"strings"
	"time"
)

// A Config sets a Core up.
type Config struct {
	// GUID returns 16 bytes that were never returned before, anywhere.
	GUID func() [16]byte
	// Jitter returns a number in [0,1) to spread timers with.
	Jitter func() float64
	// Drift is the largest difference between the rates of two clocks, as a
	// fraction; 0 means 1 %.
	Drift float64
	// Ours reports whether a znode's data are a zklock client's, whose mutexes heed
	// readers. Nil means that none are.
	Ours func(data []byte) bool
	// Persistent makes missing parents persistent znodes instead of containers.
	Persistent bool
	// Inherit has the core read, once a session, the Access of each znode below which
	// it is to make others, and hand it on with what is made there.
	Inherit bool
	// Sync makes heartbeats sync requests while the session's timeout is four times
	// the servers' Tick, or more.
	Sync bool
	Tick time.Duration
}

// A Core is the lock side of one client. Not safe for concurrent use.
type Core struct {
	cfg      Config
	session  SessionChange // the last one, whatever its state
	deadline Deadline
	beat     heartbeat
	closed   error // why no claim can succeed any more

	claims []*claim // in order of arrival
	late   []*node  // of those, the ones whose delete a create may take along
	doomed []*node  // znodes that are, or may be, there and must go
	// sights are the records that were left over when a queue was last looked at,
	// by the queue's path, and when they were first seen.
	sights map[string]map[string]time.Duration
	probes []probe // listings under way that look for doomed znodes

	access map[string]Access // of parents that were read in this session

	lanes map[string]*lane // places by the znode whose children are their queue
	// By the same: how long it was from one holder to the next, lately.
	paces map[string]time.Duration

	pending map[uint64]waiter // requests under way
	lastReq uint64
	lastID  ID
	putsOff bool // what is given up now may be deleted a moment later
	dirty   bool // a claim may be ready to be granted
	wary    int  // how many creates to come are not joined with others
	// With thousands of holds no step may look at each: how many there are, which
	// claims are ready or were, and when the first wants to be looked at.
	holds     int
	ready     []*claim
	agenda    agenda
	unwatched unwatched // holds whose znodes are to be watched
	amid      bool      // there is more to come of what one read brought, perhaps

	requests []Request
	signals  []Signal
}

// waiter is who gets a reply.
type waiter func(now time.Duration, r Reply)

// New returns a Core that waits for its session.
func New(cfg Config) *Core {
	if cfg.Drift == 0 {
		cfg.Drift = 0.01
	}
	return &Core{
		cfg: cfg, session: SessionChange{State: Disconnected}, pending: map[uint64]waiter{},
		sights: map[string]map[string]time.Duration{}, lanes: map[string]*lane{},
	}
}

// Take returns what the inputs since the last Take brought: requests to send in
// this order, and signals.
func (c *Core) Take() ([]Request, []Signal) { return c.TakeInto(nil, nil) }

// TakeInto is Take that appends to the caller's slices, so that neither side
// allocates any in the long run.
func (c *Core) TakeInto(r []Request, s []Signal) ([]Request, []Signal) {
	r, s = append(r, c.requests...), append(s, c.signals...)
	c.requests, c.signals = emptied(c.requests), emptied(c.signals)
	return r, s
}

// emptied returns the room of s, if it is not so much that it is better let go.
func emptied[T any](s []T) []T {
	const most = 16 // an ordinary step asks and tells less
	if cap(s) > most {
		return nil
	}
	clear(s)
	return s[:0]
}

// Deadline returns until when holds of this session are surely safe; ok is
// false when nothing is proven.
func (c *Core) Deadline() (at time.Duration, ok bool) { return c.deadline.At() }

// Idle reports whether no znode of this core's is left, nor may be.
func (c *Core) Idle() bool { return len(c.claims) == 0 && len(c.doomed) == 0 }

func (c *Core) connected() bool { return c.session.State == Connected }

func (c *Core) send(r Request, w waiter) {
	c.lastReq++
	r.ID, r.Session = c.lastReq, c.session.Session
	c.pending[r.ID] = w
	c.requests = append(c.requests, r)
}

func (c *Core) signal(s Signal) { c.signals = append(c.signals, s) }

// Acquire begins a claim.
func (c *Core) Acquire(now time.Duration, spec Spec) ID {
	c.advance(now)
	c.lastID++
	cl := &claim{id: c.lastID, spec: spec, agenda: &c.agenda}
	if c.closed != nil {
		c.signal(Signal{ID: cl.id, Kind: Failed, Err: c.closed})
		return cl.id
	}
	c.claims = append(c.claims, cl)
	if c.connected() {
		c.join(now, cl)
	}
	return cl.id
}

// Cancel gives a claim up, whether it waits or has been granted meanwhile. Its
// znodes are deleted in the background.
func (c *Core) Cancel(now time.Duration, id ID) {
	c.advance(now)
	if cl := c.claim(id); cl != nil {
		c.leave(now, cl, false)
	}
}

// Release ends a hold. A Released signal follows when its znodes are gone. What
// this client has next in line is granted at once, if nothing more is in the way:
// unless more of what one read brought is to be told, in which case Drained does.
func (c *Core) Release(now time.Duration, id ID) {
	c.advance(now)
	if cl := c.claim(id); cl != nil {
		c.leave(now, cl, true)
		if !c.amid {
			c.settle(now)
		}
		return
	}
	// A lost hold's znodes may still be on their way out: report when they are gone.
	for _, n := range c.doomed {
		if n.parting != nil && n.parting.id == id {
			n.parting.report = true
			return
		}
	}
	c.signal(Signal{ID: id, Kind: Released})
}

// Reply takes the outcome of a request. Replies come in the order of the wire,
// between the events that were read before and after them.
func (c *Core) Reply(now time.Duration, r Reply) {
	c.advance(now)
	w := c.pending[r.ID]
	if w == nil {
		return
	}
	delete(c.pending, r.ID)
	c.amid = true
	w(now, r)
}

// Event takes what a watch told.
func (c *Core) Event(now time.Duration, kind EventKind, path string) {
	c.advance(now)
	c.amid = true
	parents := []string{parentOf(path)}
	if kind == Children {
		// A try at a semaphore's gate looks at the permits as well.
		parents = []string{path, strings.TrimSuffix(path, "/leases") + "/locks"}
	}
	for _, parent := range parents {
		l := c.lanes[parent]
		if l == nil {
			continue
		}
		if kind == Deleted {
			l.unsee(baseOf(path))
		}
		// Over a copy: a claim whose own znode is gone leaves its places.
		for _, p := range slices.Clone(l.places) {
			if !p.over {
				c.eventAt(now, p, kind, path)
			}
		}
	}
}

// eventAt takes an event for one of a claim's places.
func (c *Core) eventAt(now time.Duration, p *place, kind EventKind, path string) {
	if kind == Children {
		switch {
		case p.clear || p.listing || p.nodes[0].state != alive:
		case p.role == leases && p.parent == path:
			c.count(p, false)
		case p.role == gate && p.blocker != "" && p.claim.spec.Try && p.sem.Path+"/leases" == path:
			c.tryGate(p, p.blocker)
		}
		return
	}
	name := baseOf(path)
	switch {
	case len(path) != len(p.parent)+1+len(name) || !strings.HasPrefix(path, p.parent): // another lock's
	case p.role == fixed:
		if name == p.nodes[0].name {
			c.eventFixed(now, p, kind)
		}
	case p.blocker == name && kind == Deleted:
		c.strike(now, p, name)
	case p.blocker == name:
		c.watchBlocker(now, p)
	default:
		for _, n := range p.nodes {
			if n.state != alive || n.name != name {
				continue
			}
			if kind == Deleted {
				c.vanished(now, n)
				return
			}
			// Until the watch is there again, nothing would tell of a deletion.
			c.doubt(n)
			c.watchOwn(n)
		}
	}
}

// Shut ends every claim, as the client is being closed: holds are lost, waiters
// fail, and all znodes are deleted as far as the session lasts.
func (c *Core) Shut(now time.Duration) {
	c.advance(now)
	c.closed = ErrClosed
	c.flush(now)
	for _, cl := range slices.Clone(c.claims) {
		if cl.phase == held {
			c.lose(now, cl, ErrClosed)
		} else {
			c.fail(now, cl, ErrClosed)
		}
	}
}

// Drained says that everything the connection had brought was delivered. Only
// now may claims be granted: the news that a waiter's own znode is gone may
// stand right behind the news that its blocker is.
func (c *Core) Drained(now time.Duration) {
	c.advance(now)
	c.amid = false
	c.settle(now)
}

// Session takes a change of the session's state.
func (c *Core) Session(now time.Duration, s SessionChange) {
	c.advance(now)
	former := c.session
	switch s.State {
	case Connected:
		if former.Session != s.Session {
			c.over(ErrExpired, nil)
		} else {
			s.Timeout = min(s.Timeout, former.Timeout) // as the deadline, see there
		}
		c.session = s
		c.deadline.Handshake(s.Sent, s.Timeout, c.cfg.Drift, former.Session != s.Session)
		c.beat.restart(now)
		c.resume(now)
	case Disconnected:
		s.Session, s.Timeout = former.Session, former.Timeout
		c.session = s
	case Expired:
		c.over(ErrExpired, nil)
		c.session = SessionChange{State: Disconnected}
	case Closed:
		c.closed = s.Err
		if c.closed == nil {
			c.closed = ErrClosed
		}
		c.session = SessionChange{State: Disconnected}
		c.over(c.closed, s.Left)
	}
}

// Tick does what is due.
func (c *Core) Tick(now time.Duration) {
	c.advance(now)
	if !c.connected() {
		return
	}
	if at := c.agenda.at(c.claims); at != 0 && at <= now {
		for _, cl := range slices.Clone(c.claims) {
			if cl.retryAt != 0 && cl.retryAt <= now {
				cl.rest()
				c.proceed(now, cl)
			}
		}
		c.agenda.old = true // or what is due no more would be due for ever
	}
	c.watchDue(now)
	for _, n := range slices.Clone(c.doomed) {
		if n.retryAt != 0 && n.retryAt <= now {
			n.retryAt = 0
			c.dispose(now, n)
		}
	}
	c.heartbeat(now)
}

// Next returns when Tick has something to do; ok is false when nothing is due.
func (c *Core) Next() (at time.Duration, ok bool) {
	sooner := func(t time.Duration) {
		if t != 0 && (!ok || t < at) {
			at, ok = t, true
		}
	}
	if c.holds > 0 {
		if d, proven := c.deadline.At(); proven {
			sooner(d)
		}
		if !c.beat.jeopardy {
			sooner(c.beat.overdueAt(c.session.Timeout))
		}
	}
	if !c.connected() {
		return at, ok
	}
	sooner(c.agenda.at(c.claims))
	watch, _ := c.watchAt()
	sooner(watch)
	for _, n := range c.doomed {
		sooner(n.retryAt)
	}
	sooner(c.beat.nextAt(c.session.Timeout))
	return at, ok
}

func (c *Core) claim(id ID) *claim {
	if i, ok := c.find(id); ok {
		return c.claims[i]
	}
	return nil
}

// find returns where in the list the claim with this ID is.
func (c *Core) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(c.claims, id, func(cl *claim, id ID) int {
		return int(int64(cl.id) - int64(id))
	})
}

// remove takes a claim off the list.
func (c *Core) remove(cl *claim) {
	if cl.phase == held {
		c.holds--
	}
	cl.rest()
	cl.phase = done
	if i, ok := c.find(cl.id); ok {
		c.claims = slices.Delete(c.claims, i, i+1)
	}
}

// advance lets time pass: it comes first in every input, so that nothing that
// arrives after the deadline revives a hold.
func (c *Core) advance(now time.Duration) {
	if c.deadline.Ahead(now) == 0 {
		for _, cl := range slices.Clone(c.claims) {
			if cl.phase == held {
				c.lose(now, cl, ErrDeadline)
			}
		}
	}
	if c.beat.overdue(now, c.session.Timeout) && !c.beat.jeopardy {
		c.beat.jeopardy = true
		c.tellHolders(Jeopardy)
	}
}

func (c *Core) tellHolders(kind SignalKind) {
	for _, cl := range c.claims {
		if cl.phase == held {
			c.signal(Signal{ID: cl.id, Kind: kind})
		}
	}
}

// answered takes note of a quorum write that succeeded.
func (c *Core) answered(r Reply) {
	if r.Conn != c.session.Conn || !c.connected() {
		return
	}
	c.deadline.Answered(r.Sent, r.Received)
	c.alive(r.Received)
}

// alive takes note of an answer to a heartbeat.
func (c *Core) alive(received time.Duration) {
	c.beat.answeredAt = received
	c.calm()
	c.dirty = true
}

// calm ends the holders' jeopardy.
func (c *Core) calm() {
	if c.beat.jeopardy {
		c.beat.jeopardy = false
		c.tellHolders(Recovered)
	}
}

// resume picks everything up on a new connection, or in a new session.
func (c *Core) resume(now time.Duration) {
	for _, cl := range slices.Clone(c.claims) {
		cl.rest()
		if cl.phase == working || cl.phase == ready {
			for _, p := range cl.places {
				p.notAhead() // the nearest is asked for again, and watched
				// What went meanwhile is told in any order, in one read or in several.
				if p.clear || p.listed || p.role == leases {
					for _, n := range p.nodes {
						c.doubt(n)
					}
				}
			}
		}
		c.proceed(now, cl)
	}
	for _, n := range slices.Clone(c.doomed) {
		n.retryAt = 0
		n.distrust()
		c.dispose(now, n)
	}
	if c.holds > 0 {
		c.beatNow(now) // what it proves of the handshake keeps the holds
		return
	}
	c.heartbeat(now)
}

// over ends everything that belonged to the session: holds are lost, waiters
// will queue again in the next session, doomed znodes are gone with it, unless
// left says why they may not be. Only the records of claims that left in order
// are there still, and have to go.
func (c *Core) over(why, left error) {
	for _, n := range slices.Clone(c.doomed) {
		if n.named == forever && c.closed == nil {
			n.state = alive
		} else {
			c.finish(n, left)
		}
	}
	c.probes, c.late, c.access = nil, nil, nil
	c.deadline.Forget()
	c.beat = heartbeat{}
	for _, cl := range slices.Clone(c.claims) {
		for _, p := range cl.places {
			c.quit(p)
			if p.record != nil && cl.phase != held && c.closed == nil {
				p.record.state, p.record.owner, p.record.place = alive, nil, nil
				c.doomed = append(c.doomed, p.record)
			}
			for _, n := range p.nodes {
				n.state = absent
			}
		}
		if cl.swap != nil {
			for _, n := range cl.swap.news {
				n.state = absent
			}
		}
		cl.places, cl.swap = nil, nil
		cl.inquiry, cl.access = nil, nil
		switch {
		case cl.phase == held:
			c.remove(cl)
			c.signal(Signal{ID: cl.id, Kind: Lost, Err: why})
		case c.closed != nil:
			c.remove(cl)
			c.signal(Signal{ID: cl.id, Kind: Failed, Err: why})
		default:
			cl.rest()
			cl.phase, cl.step, cl.retaking, cl.revoked = parked, 0, false, false
		}
	}
}
