package queue

import (
	"slices"
	"strings"
	"time"
)

// A Config configures a Core.
type Config struct {
	// GUID returns 16 bytes that are unique across all clients and time.
	GUID func() [16]byte
	// Jitter returns a number in [0,1), which spreads timers.
	Jitter func() float64
	// Drift is the largest difference between the rates of two clocks, as a
	// fraction; 0 means 1 %.
	Drift float64
	// Ours reports whether a znode's data were written by zklock in a known layout, whose
	// mutexes wait for readers. Nil means that none were.
	Ours func(data []byte) bool
	// Persistent creates missing parents as persistent znodes instead of containers.
	Persistent bool
	// Inherit reports whether the core reads the Access of each parent once a session, and
	// passes it on with the znodes that it creates there, and with the parents that it creates.
	// The core calls it before it creates entries. The answer may change from false to true.
	// Nil means never.
	Inherit func() bool
	// Sync uses sync requests as heartbeats if the session timeout is at least four times
	// the servers' Tick.
	Sync bool
	Tick time.Duration
	// OwnSession says that no other client uses the session, and so none can end its watches. The
	// core then acquires locks that only this client uses without a listing.
	OwnSession bool
}

// A Core is the lock side of one client. Not safe for concurrent use.
type Core struct {
	cfg      Config
	session  SessionChange // the last one, whatever its state
	deadline Deadline
	beat     heartbeat
	closed   error // why no acquire can succeed any more
	// unsettledUntil is until when the servers may apply requests of earlier connections,
	// even after they answered a write on this one: a server may still tell the leader
	// that the session has moved back to it, right behind such a request.
	unsettledUntil time.Duration
	// settledAt is when the last answered write was sent of those that heartbeats send because of
	// unsettledUntil.
	settledAt time.Duration

	acquires       []*acquire    // in order of arrival
	late           []*node       // those whose delete the next create may include
	pendingDeletes []*node       // znodes that exist, or may, and must be deleted
	deletesAt      time.Duration // when to look for deletes to retry, at the earliest; 0 for never
	unanswered     []*node       // znodes of this session that are gone, but whose creates were not answered; see [Core.searchAgain]
	// sights holds when each leftover record of the last listing of a queue was first
	// seen, by the queue's path.
	sights map[string]map[string]time.Duration
	probes []probe // listings in flight that search for pending deletes

	backlog backlog // canceled acquires without an answer, and the acquires that wait for them

	access map[string]Access // of parents, as read in this session

	queues          map[string]*clientQueue  // positions by the znode whose children are their queue
	unmarked        map[string]time.Duration // until when releases are not marked, by the same path
	parentWatches   map[string]*parentWatch  // by the same path
	separateWatches time.Duration            // until when waiters set their watches by separate requests
	noContainers    bool                     // the servers of this connection have no containers
	keepsWatches    bool                     // they cannot remove watches

	sizeWatches       map[string]*sizeWatch // by the path of the stored size
	unusedSizeWatches int                   // how many of them no position needs

	pending   map[uint64]waiter // requests in flight
	lastReq   uint64
	lastID    ID
	putsOff   bool // the deletes of this call may wait for the next create
	dirty     bool // an acquire may be ready to be granted
	unbatched int  // how many of the next creates are not batched
	// A client may have thousands of holds, so no step may visit each of them. These
	// count the holds, list the acquires that are or were ready, and hold the earliest
	// scheduled check.
	holds     int
	ready     []*acquire
	agenda    agenda
	unwatched unwatched // acquires whose znodes get a watch later
	undrained bool      // one read of the connection may have brought more that is not delivered yet

	requests []Request
	signals  []Signal
}

// waiter handles a reply.
type waiter func(now time.Duration, r Reply)

// New returns a Core that waits for its session.
func New(cfg Config) *Core {
	if cfg.Drift == 0 {
		cfg.Drift = 0.01
	}
	if cfg.Inherit == nil {
		cfg.Inherit = func() bool { return false }
	}
	c := &Core{
		cfg: cfg, session: SessionChange{State: Disconnected}, pending: map[uint64]waiter{},
		sights: map[string]map[string]time.Duration{}, queues: map[string]*clientQueue{},
	}
	c.deadline.SetTick(cfg.Tick)
	return c
}

// Take appends the outputs of the inputs since the last Take to the caller's slices:
// requests to send in this order, and signals. Neither side allocates in the long run.
func (c *Core) Take(r []Request, s []Signal) ([]Request, []Signal) {
	r, s = append(r, c.requests...), append(s, c.signals...)
	c.requests, c.signals = emptied(c.requests), emptied(c.signals)
	return r, s
}

// emptied returns s with length 0 for reuse, or nil if its capacity is too large to keep.
func emptied[T any](s []T) []T {
	const most = 128 // the step of a client that uses many locks at once
	if cap(s) > most {
		return nil
	}
	clear(s)
	return s[:0]
}

// Deadline returns the time until which holds of this session are certainly safe; ok is
// false if nothing is proven.
func (c *Core) Deadline() (at time.Duration, ok bool) { return c.deadline.At() }

// Idle reports whether no znode of this core exists or may exist.
func (c *Core) Idle() bool { return len(c.acquires) == 0 && len(c.pendingDeletes) == 0 }

func (c *Core) connected() bool { return c.session.State == Connected }

func (c *Core) send(r Request, w waiter) {
	c.lastReq++
	r.ID, r.Session = c.lastReq, c.session.Session
	c.pending[r.ID] = w
	c.requests = append(c.requests, r)
}

func (c *Core) signal(s Signal) { c.signals = append(c.signals, s) }

// Acquire starts an acquire.
func (c *Core) Acquire(now time.Duration, spec Spec) ID {
	c.advance(now)
	c.lastID++
	acq := &acquire{id: c.lastID, spec: spec, agenda: &c.agenda}
	if c.closed != nil {
		c.signal(Signal{ID: acq.id, Kind: Failed, Err: c.closed})
		return acq.id
	}
	c.acquires = append(c.acquires, acq)
	if c.connected() {
		c.start(now, acq)
	}
	return acq.id
}

// Cancel ends an acquire, whether it waits or has been granted. Its znodes are deleted
// in the background.
func (c *Core) Cancel(now time.Duration, id ID) {
	c.advance(now)
	if acq := c.acquireByID(id); acq != nil {
		c.leave(now, acq, false)
	}
}

// Release ends a hold. A Released signal follows when its znodes are gone. If this
// client's successor is not blocked, it is granted at once, or by Drained if inputs from
// the same read are still to be delivered.
func (c *Core) Release(now time.Duration, id ID) {
	c.advance(now)
	if acq := c.acquireByID(id); acq != nil {
		c.leave(now, acq, true)
		if !c.undrained {
			c.grantReady(now)
		}
		return
	}
	// The znodes of a lost hold may still be pending deletes: report when they are gone.
	for _, n := range c.pendingDeletes {
		if n.parting != nil && n.parting.id == id {
			n.parting.report = true
			return
		}
	}
	c.signal(Signal{ID: id, Kind: Released})
}

// Reply handles the outcome of a request. The caller delivers replies and events in the
// order in which the connection brought them.
func (c *Core) Reply(now time.Duration, r Reply) {
	c.advance(now)
	w := c.pending[r.ID]
	if w == nil {
		return
	}
	delete(c.pending, r.ID)
	c.undrained = true
	w(now, r)
	c.resumeParked(now)
}

// Event handles a watch event. zxid is the transaction, 0 or less if the server does not
// tell it.
func (c *Core) Event(now time.Duration, kind EventKind, path string, zxid int64) {
	c.advance(now)
	c.undrained = true
	if semaphore, ok := semaphoreOf(kind, path); ok {
		c.leasesChanged(now, semaphore)
	}
	if kind == Deleted || kind == Changed {
		delete(c.parentWatches, path)
		c.sizeChanged(path)
	}
	if kind == Deleted {
		c.parentDeleted(path)
	}
	l := c.queues[parentOf(path)]
	if l == nil || kind == Children {
		return
	}
	if kind == Deleted || kind == Changed {
		l.entryUnwatched(baseOf(path))
	}
	for _, p := range l.concerned(kind, path) {
		if p.membership == present {
			c.eventAt(now, p, kind, path, zxid)
		}
	}
}

// eventAt handles an event for one position.
func (c *Core) eventAt(now time.Duration, p *position, kind EventKind, path string, zxid int64) {
	name := baseOf(path)
	switch {
	case len(path) != len(p.parent)+1+len(name) || !strings.HasPrefix(path, p.parent): // another lock's
	case p.role == fixed:
		if name == p.nodes[0].name {
			c.eventFixed(now, p, kind)
		}
	case kind == Created && p.markMade(path, zxid):
	case p.blocker.name == name && kind == Deleted:
		if p.blocker.mark == markSeen && zxid != p.blocker.marked {
			p.blocker.mark = markUnwatched // the mark is not of this release
		}
		c.removeBlocker(now, p, name)
	case p.blocker.name == name:
		c.watchBlocker(now, p)
	default:
		for _, n := range p.nodes {
			if n.state != alive || n.name != name {
				continue
			}
			if kind == Deleted {
				n.watchReq = 0
				c.vanished(now, n)
				return
			}
			// A deletion before the new watch is set triggers no event.
			c.doubt(n)
			c.watchOwn(n)
		}
	}
}

// Shut ends every acquire because the client is closing: holds are lost, waiters fail,
// and all znodes are deleted while the session lasts.
func (c *Core) Shut(now time.Duration) {
	c.advance(now)
	c.closed = ErrClosed
	c.flush(now)
	for _, acq := range slices.Clone(c.acquires) {
		if acq.phase == held {
			c.lose(now, acq, ErrClosed)
		} else {
			c.fail(now, acq, ErrClosed)
		}
	}
}

// Drained says that everything that one read of the connection brought was delivered.
// Only then may acquires be granted: the event that a waiter's own znode was deleted may
// directly follow the event that its blocker was.
func (c *Core) Drained(now time.Duration) {
	c.advance(now)
	c.undrained = false
	c.grantReady(now)
}

// MayGrant reports whether Drained may grant an acquire.
func (c *Core) MayGrant() bool { return c.dirty && len(c.ready) > 0 }

// Session handles a change of the session's state.
func (c *Core) Session(now time.Duration, s SessionChange) {
	c.advance(now)
	former := c.session
	switch s.State {
	case Connected:
		if former.Session != s.Session {
			c.over(now, ErrExpired, nil)
		} else {
			s.Timeout = min(s.Timeout, former.Timeout) // as in Deadline.Handshake
		}
		c.session = s
		c.deadline.Handshake(s.Sent, s.Timeout, c.cfg.Drift, former.Session != s.Session)
		c.beat.restart(now)
		c.unsettledUntil = 0
		if s.GivenUp != 0 {
			c.unsettledUntil = s.GivenUp + s.Timeout
		}
		// Another server may answer, or this one was upgraded.
		c.noContainers, c.keepsWatches = false, false
		c.resume(now)
	case Disconnected:
		s.Session, s.Timeout = former.Session, former.Timeout
		c.session = s
	case Expired:
		c.over(now, ErrExpired, nil)
		c.session = SessionChange{State: Disconnected}
	case Closed:
		c.closed = s.Err
		if c.closed == nil {
			c.closed = ErrClosed
		}
		c.session = SessionChange{State: Disconnected}
		c.over(now, c.closed, s.Left)
	}
}

// Tick does what is due.
func (c *Core) Tick(now time.Duration) {
	c.advance(now)
	if !c.connected() {
		return
	}
	if at := c.agenda.at(c.acquires); at != 0 && at <= now {
		for _, acq := range slices.Clone(c.acquires) {
			if acq.retryAt != 0 && acq.retryAt <= now {
				acq.cancelRetry()
				c.proceed(now, acq)
			}
		}
		c.agenda.old = true // otherwise a check that has run would stay due
	}
	c.watchDue(now)
	if c.deletesAt != 0 && c.deletesAt <= now {
		c.retryDeletes(now)
	}
	c.heartbeat(now)
}

// Next returns when Tick is next due; ok is false if nothing is scheduled.
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
	sooner(c.agenda.at(c.acquires))
	watch, _ := c.watchAt()
	sooner(watch)
	sooner(c.deletesAt)
	sooner(c.nextBeat())
	return at, ok
}

func (c *Core) acquireByID(id ID) *acquire {
	if i, ok := c.find(id); ok {
		return c.acquires[i]
	}
	return nil
}

// find returns the index of the acquire with this ID.
func (c *Core) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(c.acquires, id, func(acq *acquire, id ID) int {
		return int(int64(acq.id) - int64(id))
	})
}

// remove removes an acquire from the list.
func (c *Core) remove(acq *acquire) {
	if acq.phase == held {
		c.holds--
	}
	if acq.update != nil {
		c.updated(acq, ErrNotHeld)
	}
	acq.cancelRetry()
	c.backlog.remove(acq)
	acq.phase = done
	if i, ok := c.find(acq.id); ok {
		c.acquires = deleteAt(c.acquires, i)
	}
}

// deleteAt removes the i-th element. It moves the shorter part of the list, so that the time
// to remove one of the first elements, as most are, does not grow with the list.
func deleteAt[T any](list []*T, i int) []*T {
	if i >= len(list)/2 {
		return slices.Delete(list, i, i+1)
	}
	copy(list[1:i+1], list[:i])
	list[0] = nil
	return list[1:]
}

// advance handles the passing of time. Every input calls it first, so that nothing that
// arrives after the deadline revives a hold.
func (c *Core) advance(now time.Duration) {
	if c.holds > 0 && c.deadline.Ahead(now) == 0 {
		for _, acq := range slices.Clone(c.acquires) {
			if acq.phase == held {
				c.lose(now, acq, ErrDeadline)
			}
		}
	}
	if c.beat.overdue(now, c.session.Timeout) && !c.beat.jeopardy {
		c.beat.jeopardy = true
		c.tellHolders(Jeopardy)
	}
}

func (c *Core) tellHolders(kind SignalKind) {
	for _, acq := range c.acquires {
		if acq.phase == held {
			c.signal(Signal{ID: acq.id, Kind: kind})
		}
	}
}

// answered records a quorum write that succeeded.
func (c *Core) answered(r Reply) {
	if r.Conn != c.session.Conn || !c.connected() {
		return
	}
	c.deadline.Answered(r.Sent, r.Received)
	c.alive(r.Received)
}

// alive records an answer to a heartbeat.
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

// resume continues everything on a new connection or in a new session.
func (c *Core) resume(now time.Duration) {
	c.unbind()
	for _, acq := range slices.Clone(c.acquires) {
		acq.cancelRetry()
		if acq.phase == working || acq.phase == ready {
			for _, p := range acq.positions {
				p.blocker.mark = markUnwatched // the blocker is read and watched again
				// The servers report deletions since then in any order, over several reads.
				if p.clearance != notCleared || p.listed || p.role == leases {
					for _, n := range p.nodes {
						c.doubt(n)
					}
				}
			}
		}
		c.proceed(now, acq)
	}
	if c.holds > 0 {
		c.sendFirst()
		c.beatNow(now) // its answer proves the handshake, which keeps the holds
	}
	c.searchAgain()
	c.removeSizeWatches()
	c.deletesAt = 0
	for _, n := range c.pendingDeletes {
		n.retryAt = 0
		n.distrust()
	}
	c.disposeAll(now, slices.Clone(c.pendingDeletes))
	if c.holds == 0 {
		c.heartbeat(now)
	}
}

// over ends everything that belonged to the session. Holds are lost, and waiters enqueue
// again in the next session. Pending deletes are gone with the session, unless left says
// why they may still exist. The records of acquires that were not lost are persistent, so
// they are still to be deleted.
//
// A session that expires before the deadline was ended by another client, or its server lost
// its data. That may have happened before a release whose delete has no answer yet, so that
// release reports the loss.
func (c *Core) over(now time.Duration, why, left error) {
	early := why == ErrExpired && c.deadline.Ahead(now) > 0
	for _, n := range slices.Clone(c.pendingDeletes) {
		switch {
		case n.named == forever && c.closed == nil:
			n.state = alive
		case early && n.due:
			c.finish(n, why)
		default:
			c.finish(n, left)
		}
	}
	c.probes, c.late, c.access, c.unanswered, c.parentWatches = nil, nil, nil, nil, nil
	c.sizeWatches, c.unusedSizeWatches = nil, 0
	c.backlog.unanswered = 0
	c.deadline.Forget()
	c.beat = heartbeat{}
	for _, acq := range slices.Clone(c.acquires) {
		for _, p := range acq.positions {
			p.blocker.mark = markUnwatched // its watch ends with the session
			c.leaveQueue(p)
			if p.record != nil && acq.phase != held && c.closed == nil {
				p.record.state, p.record.owner, p.record.position = alive, nil, nil
				c.pendingDeletes = append(c.pendingDeletes, p.record)
			}
			for _, n := range p.nodes {
				n.state = absent
			}
		}
		if acq.swap != nil {
			for _, n := range acq.swap.news {
				n.state = absent
			}
		}
		acq.positions, acq.swap = nil, nil
		acq.inquiry, acq.access = nil, nil
		switch {
		case acq.phase == held:
			c.remove(acq)
			c.signal(Signal{ID: acq.id, Kind: Lost, Err: why})
		case c.closed != nil:
			c.remove(acq)
			c.signal(Signal{ID: acq.id, Kind: Failed, Err: why})
		default:
			acq.cancelRetry()
			acq.phase, acq.step, acq.retryingStep, acq.revoked = parked, 0, false, false
		}
	}
}
