package queue

import (
	"math"
	"slices"
	"strings"
	"time"
)

// role is what a position is for.
type role uint8

const (
	member role = iota // in a queue of contenders
	gate               // in the queue for a semaphore's gate
	leases             // among a semaphore's permits
	fixed              // a node lock's one znode
)

// membership is whether a position is still the acquire's.
type membership uint8

const (
	present    membership = iota // the acquire stands at it
	abandoned                    // the acquire has left it, and its successors ask the servers
	handedOver                   // the acquire has left it, and its owner had finished with it
)

// clearance is whether entries ahead block a position.
type clearance uint8

const (
	notCleared   clearance = iota // an entry ahead blocks, or nothing is known yet
	cleared                       // no entry ahead blocks
	clearedAlone                  // an exclusive position that had no entry ahead at all
)

// query is the request whose answer a position needs before its next step.
type query uint8

const (
	idle      query = iota // none
	following              // the create: its number shows whether the list of the predecessor applies; see [Core.follow]
	reading                // a listing, or the reads that complete one
	outdated               // the reads of a semaphore, since a watch of an earlier one has fired
	proving                // the one that proves that the predecessor's entry existed; see [Core.prove]
)

// form is what kind of entry a position has.
type form uint8

const (
	mutexEntry form = iota
	writerEntry
	readerEntry         // also a writer after its downgrade
	tolerantReaderEntry // a reader that is granted next to exclusive entries that ignore readers
)

// form returns the form of a member's entry.
func (m Member) form() form {
	switch {
	case m.Kind == Shared && m.AllowForeign:
		return tolerantReaderEntry
	case m.Kind == Shared:
		return readerEntry
	case m.Writer:
		return writerEntry
	}
	return mutexEntry
}

func (p *position) kind() Kind {
	if p.form == readerEntry || p.form == tolerantReaderEntry {
		return Shared
	}
	return Exclusive
}

// A blocker is the entry that a position waits for.
type blocker struct {
	name  string
	watch blockerWatch
	mark  markState
	// marked is the transaction of the mark that was read, 0 or less if it is unknown.
	marked int64
}

// blockerWatch is what is known of the watch on a blocker.
type blockerWatch uint8

const (
	watchNone      blockerWatch = iota // not needed: the blocker is an entry of this client
	watchRequested                     // set, unless its answer is still to come and reports otherwise
	watchFailed                        // its request got no answer, so it may not be set
)

// A position is an acquire's part in one lock: its znodes there, and the entries
// ahead of them. It has one znode, two in a mixed queue, or one for each permit.
//
// An acquire enqueues with its creates and lists the queue once. From then on it keeps its
// blocker. Entries can only leave the part of the queue that is ahead of it.
type position struct {
	acquire     *acquire
	parent      string // the znode whose children are the queue
	names       Names
	sem         *Semaphore // of a gate or leases
	nodes       []*node
	were        []string  // the names of its entries before a downgrade
	predecessor *position // of this client: its list of entries ahead is used in place of a listing; nil if not, or once proven

	ahead   []Entry // of the entries ahead in the last listing, those that are kept: see [position.setAhead]
	hidden  int     // how many others there were, at most
	blocker blocker // zero if it waits for no entry
	told    string  // the path of the blocker in the last Waiting signal

	watchedBy uint64 // the request that had set the watch on the parent when the entries were created; 0 if none had

	// A blocker of this client has a position too.
	awaits    *position   // that position; nil if there is none
	followers []*position // the positions that await this one
	access    Access      // of its parent
	limit     *limit      // of leases: the number of permits that is noted next to them

	delay    time.Duration
	record   *node            // what other clients find if this client crashes; nil without delay
	leftover *leftoverRecords // nil if the last listing showed none

	// Small fields are adjacent to save memory: a client may hold thousands of locks.
	role       role
	membership membership
	clearance  clearance
	query      query
	form       form

	// These are independent of the states above and of each other.

	// apart: its listings are not batched, because a batch was undone. That is about
	// how requests are sent, in any state.
	apart bool
	// discredited: its list came from a predecessor that has since replaced that list
	// without proving it. A position that was left keeps this, for its successors.
	discredited bool
	// listed: the entries ahead are known. A query can fail before or after that.
	listed bool
	// others: entries that are not kept block it too, so it lists the queue again when it
	// has no blocker left.
	others bool
	// relist: the deletion of the blocker alone does not clear it, because a writer was
	// ahead, or because of a lock-delay. It stays so when the writer's entry is deleted.
	relist bool
	// waited: an entry blocked it.
	waited bool
	// watchesSize: it needs the watch on its semaphore's stored size.
	watchesSize bool
	// inherits: access was read. It is not if the core creates znodes with the default.
	inherits bool
	// watching: it is among the watchers of its queue. watchingMark: by the mark too.
	watching, watchingMark bool
}

// entriesAhead returns how many entries are ahead, as far as is known.
func (p *position) entriesAhead() int { return len(p.ahead) + p.hidden }

// EntriesAhead returns how many entries are ahead of an acquire in the queue in which it
// waits, as far as is known.
func (c *Core) EntriesAhead(id ID) int {
	if acq := c.acquireByID(id); acq != nil {
		for _, p := range acq.positions {
			if p.clearance == notCleared && p.blocker.name != "" {
				return p.entriesAhead()
			}
		}
	}
	return 0
}

// list sends the requests that read the position's queue.
func (c *Core) list(p *position) {
	p.query, p.listed = reading, false
	switch {
	case p.role == fixed:
		c.readFixed(p)
	case p.role == leases:
		c.count(p, false)
	case p.delay > 0:
		c.listRecords(p)
	default:
		c.send(Request{Kind: List, Path: p.parent, Batchable: !p.apart}, func(now time.Duration, r Reply) {
			if c.answers(now, p, r) {
				c.listed(now, p, r.Children)
			}
		})
	}
}

// answers reports whether a listing of the position's queue succeeded. If not, it
// handles the failure.
func (c *Core) answers(now time.Duration, p *position, r Reply) bool {
	if p.membership != present || p.acquire.phase != working {
		return false
	}
	p.query = idle
	switch r.Code {
	case OK:
		return true
	case NoNode:
		c.gone(now, p.nodes[0])
	case Unknown, NotApplied:
		p.acquire.retry(now + retryPause)
	case Undone:
		p.apart = true
		c.list(p)
	case SessionOver: // the session change follows, and parks the acquire
	default:
		c.fail(now, p.acquire, r.Err)
	}
	return false
}

// listed handles a listing that was read after the position's own creates.
func (c *Core) listed(now time.Duration, p *position, children []string) {
	c.discreditFollowers(p)
	p.listed, p.predecessor, p.discredited = true, nil, false
	s := sorters.Get().(*sorter)
	defer s.free()
	l := s.sort(p.names, children, p.last())
	for _, n := range p.nodes {
		if !slices.ContainsFunc(l.Queue, func(e Entry) bool { return e.Name == n.name }) {
			c.gone(now, n)
			return
		}
	}
	if len(l.Malformed) > 0 {
		c.fail(now, p.acquire, &ExhaustedError{p.parent})
		return
	}
	// The znodes of one position have consecutive numbers.
	i := slices.IndexFunc(l.Queue, p.owns)
	p.setAhead(c.discount(p, l.Queue[:i]))
	if p.checksForeign() && c.checkForeign(p, l.Queue) {
		return
	}
	c.decide(now, p)
	c.listedAlone(p)
}

// last returns the highest sequence number that a listing has to include.
func (p *position) last() int64 {
	e, class := p.names.Parse(p.nodes[len(p.nodes)-1].name)
	if class != Contender || p.checksForeign() { // also the entries after it
		return math.MaxInt64
	}
	return e.Seq
}

// owns reports whether the entry is one of the position's own.
func (p *position) owns(e Entry) bool {
	return slices.ContainsFunc(p.nodes, func(n *node) bool { return n.name == e.Name })
}

// checksForeign reports whether entries of some recipes do not wait for the position's
// entries. If a listing shows such an entry, the position is not granted. No further listing
// follows at the end of a wait, so this finds wrong configurations and excludes nothing.
func (p *position) checksForeign() bool {
	if p.kind() == Shared {
		return p.form != tolerantReaderEntry
	}
	return Entry{Layout: WriteLock}.Overlooks(p.names, p.kind(), p.form == writerEntry)
}

// checkForeign reads the data of entries that may belong to a recipe that does not wait
// for the position's entries, and reports whether it has to wait for answers. The data
// identify the library. The acquire fails if any such entry exists, ahead or behind. If a
// release request has replaced the data, the position waits for an entry ahead as for any
// other. One behind may not wait for the position, so the acquire fails. Until all answers
// are there, the position has no blocker, as after every listing, so that no event grants
// it: only the answers decide, or another listing.
//
// The positions of a client share what they read: many readers may wait behind many mutexes.
// Of that, the client keeps what the last listing shows.
func (c *Core) checkForeign(p *position, queue []Entry) bool {
	l, kept := c.queues[p.parent], 0
	var v *vetting // nil unless something has to be read
	for _, e := range queue {
		switch {
		case l.vetted[e.Name]:
			kept++
		case e.Overlooks(p.names, p.kind(), p.form == writerEntry):
			if v == nil {
				v = &vetting{position: p}
			}
			v.left++
			c.vet(l, e, v)
		}
	}
	if kept < len(l.vetted) {
		former := l.vetted
		l.vetted = nil
		for _, e := range queue {
			if former[e.Name] {
				l.addVetted(e.Name)
			}
		}
	}
	if v != nil {
		p.query = reading
	}
	return v != nil
}

// A vetting is the reads of entries that a listing of one position requires.
type vetting struct {
	position *position
	left     int  // reads without an answer; 0 after a failure, and then the others do not matter
	outdated bool // an entry of the listing is gone
}

// addVetted adds an entry that zklock made. The name is copied, so that the listing's other names
// are freed.
func (l *clientQueue) addVetted(name string) {
	if l.vetted == nil {
		l.vetted = map[string]bool{}
	}
	l.vetted[strings.Clone(name)] = true
}

// vet reads the data of an entry for a position, unless a read for another one is in flight.
func (c *Core) vet(l *clientQueue, e Entry, v *vetting) {
	if all := l.vettings[e.Name]; all != nil {
		l.vettings[e.Name] = append(all, v)
		return
	}
	if l.vettings == nil {
		l.vettings = map[string][]*vetting{}
	}
	l.vettings[e.Name] = []*vetting{v}
	ask := Request{Kind: Get, Path: v.position.parent + "/" + e.Name}
	c.send(ask, func(now time.Duration, r Reply) {
		all := l.vettings[e.Name]
		delete(l.vettings, e.Name)
		own := r.Code == OK && c.cfg.Ours != nil && c.cfg.Ours(r.Data)
		if own {
			l.addVetted(e.Name)
		}
		for _, v := range all {
			c.vetAnswered(now, v, e, r, own)
		}
	})
}

// vetAnswered handles the answer to the read of an entry for one position. own says that zklock
// made the entry.
func (c *Core) vetAnswered(now time.Duration, v *vetting, e Entry, r Reply, own bool) {
	p := v.position
	if p.membership != present || p.acquire.phase != working || v.left == 0 {
		return
	}
	v.left--
	switch r.Code {
	case OK:
		first, _ := p.names.Parse(p.nodes[0].name)
		if !own && !(e.Seq < first.Seq && bareRequest(r.Data)) {
			c.fail(now, p.acquire, p.foreignError())
			return
		}
	case NoNode:
		v.outdated = true
	case Unknown, NotApplied:
		p.acquire.retry(now + retryPause) // which lists again
		p.query, v.left = idle, 0
		return
	case SessionOver:
		return
	default:
		c.fail(now, p.acquire, r.Err)
		return
	}
	switch {
	case v.left == 0 && v.outdated:
		c.list(p)
	case v.left == 0:
		p.query = idle
		c.decide(now, p)
	}
}

// foreignError returns the reason for which the position is not granted next to another
// library's entries.
func (p *position) foreignError() error {
	if p.kind() == Exclusive {
		return ErrWriteLock
	}
	return ErrForeign
}

// decide takes the next step that the position's list of entries ahead allows.
func (c *Core) decide(now time.Duration, p *position) {
	acq := p.acquire
	b, blocked := Blocker(p.kind(), p.ahead)
	switch {
	case !blocked && p.others:
		c.list(p)
	case !blocked && !p.listProven():
		c.prove(p)
	case !blocked && c.delayed(now, p):
	case !blocked:
		c.clear(now, p)
	case acq.spec.Try && p.role == gate:
		c.tryGate(p, b.Name)
	case acq.spec.Try && c.lockedByOthers(p):
		c.failLocked(now, acq, p.holder())
	default:
		c.block(p, blocker{name: b.Name})
		p.waited = true
		c.watchWait(now, p)
		if acq.spec.Try && !c.isPendingDelete(p.parent, b.Name) {
			acq.retry(now + retryPause) // the reply shows whose entry it is
		}
	}
}

// lockedByOthers reports whether an entry of another client blocks the position. Even a
// try waits for this client's own pending deletes, such as the znode of a create whose
// answer was lost, but not for one that the servers refuse to delete.
func (c *Core) lockedByOthers(p *position) bool {
	_, blocked := Blocker(p.kind(), slices.DeleteFunc(slices.Clone(p.ahead), func(e Entry) bool {
		return c.isPendingDelete(p.parent, e.Name) || c.maybePendingDelete(p.parent, e.Name)
	}))
	return blocked
}

// holder returns the path of the znode that holds the lock and blocks the position. It
// returns "" if the first entry does not block the position.
func (p *position) holder() string {
	if p.kind() == Shared && p.ahead[0].Kind == Shared {
		return ""
	}
	return p.parent + "/" + p.ahead[0].Name
}

// maybePendingDelete reports whether a child may be one of this client's pending deletes
// whose name is not known yet.
func (c *Core) maybePendingDelete(parent, name string) bool {
	return slices.ContainsFunc(c.pendingDeletes, func(n *node) bool {
		return n.parent == parent && n.name == "" && n.named == byData && strings.HasPrefix(name, n.prefix)
	})
}

// isPendingDelete reports whether a child is one of this client's pending deletes.
func (c *Core) isPendingDelete(parent, name string) bool {
	return slices.ContainsFunc(c.pendingDeletes, func(n *node) bool {
		if n.parent != parent || n.refused {
			return false
		}
		return n.name == name || n.name == "" && n.named == byGUID && strings.HasPrefix(name, n.prefix)
	})
}

// watchWait sets the watches that a waiter needs: on its own entries, so that it learns in
// order with the other events if another client deletes one, and on its blocker. If it waits
// for an entry of this client and needs no watch on its own entries as a proof, it sets those
// watches later: its turn may come soon.
func (c *Core) watchWait(now time.Duration, p *position) {
	together := (p.role == member || p.role == gate) && !p.acquire.spec.Try && now >= c.separateWatches && p.nodes[0].czxid > 0 &&
		!p.names.HasReusableNames() && c.standing(p.parent, p.blocker.name) == nil
	if together {
		c.watchTogether(now, p)
		if p.acquire.spec.TellAfter > 0 {
			return
		}
	}
	if p.watchedBy != 0 && c.standing(p.parent, p.blocker.name) != nil {
		c.watchLater(now, p.acquire)
	} else {
		c.watchOwnNodes(p.acquire)
	}
	c.awaitBlocker(now, p)
}

// watchBlocker sets a watch on the blocker, and reads whose entry it is. It uses getData instead of exists, because
// exists leaves a watch even if the znode is missing.
func (c *Core) watchBlocker(now time.Duration, p *position) {
	name := p.blocker.name
	p.blocker.watch = watchRequested
	c.watches(p, false)
	p.acquire.retry(now + c.recheckDelay())
	c.send(Request{Kind: Get, Path: p.parent + "/" + name, Watch: true}, func(now time.Duration, r Reply) {
		if p.membership != present || p.blocker.name != name {
			return
		}
		switch r.Code {
		case OK:
			if !p.struck(name) {
				c.signalWaiting(p, p.parent+"/"+name, p.entriesAhead(), r.Data)
			}
		case NoNode:
			if p.blocker.marked > 0 { // the answer does not tell the transaction of the blocker's end
				p.blocker.mark = markUnwatched
			}
			c.removeBlocker(now, p, name)
		case Unknown, NotApplied:
			p.blocker.watch = watchFailed
			p.acquire.retry(now + retryPause)
		case SessionOver:
		default:
			c.fail(now, p.acquire, r.Err)
		}
	})
}

// signalWaiting signals which znode the acquire waits for, once for each.
func (c *Core) signalWaiting(p *position, path string, ahead int, data []byte) {
	if p.told != path {
		p.told = path
		c.signal(Signal{ID: p.acquire.id, Kind: Waiting, Ahead: ahead, Blocker: path, Data: data})
	}
}

// recheckDelay returns the time until a waiter checks its blocker again, at most two
// session timeouts. A watch can be lost. It also never fires if the client has lost the
// permission to read the znode.
func (c *Core) recheckDelay() time.Duration {
	pause := recheckPause
	if t := c.deadline.timeout; t > 0 {
		pause = min(pause, t*8/5)
	}
	return time.Duration(float64(pause) * (0.75 + c.cfg.Jitter()/2))
}

// removeBlocker removes the deleted blocker from what is kept of the entries ahead. If its
// release was marked, nothing is ahead. Otherwise a new listing is needed in two cases: to
// find out whether other entries ahead are also gone, and, if a writer was ahead, whether it
// left a reader's entry with the same sequence number.
func (c *Core) removeBlocker(now time.Duration, p *position, name string) {
	if p.blocker.mark == markSeen {
		p.clearUpTo(1 + slices.IndexFunc(p.ahead, func(e Entry) bool { return e.Name == name }))
	} else {
		p.without(func(e Entry) bool { return e.Name == name })
	}
	c.block(p, blocker{})
	if _, blocked := Blocker(p.kind(), p.ahead); !blocked && !p.others && !p.relist {
		c.decide(now, p)
	} else {
		c.list(p)
	}
}

// proceedAt resumes the acquire at one of its positions.
func (c *Core) proceedAt(now time.Duration, p *position) {
	switch {
	case p.query != idle || p.clearance != notCleared || len(p.nodes) == 0 || p.nodes[0].state == creating:
	case p.role == fixed:
		c.proceedFixed(now, p)
	case p.role == leases:
		c.count(p, true)
	case p.blocker.name == "" || p.acquire.spec.Try:
		c.block(p, blocker{}) // a try waits only for entries that are about to be deleted, or fails
		c.list(p)
	default:
		c.watchOwnNodes(p.acquire)
		c.awaitBlocker(now, p)
	}
}

// vanished handles the deletion of one of the client's own znodes.
func (c *Core) vanished(now time.Duration, n *node) {
	if n.owner != nil && n.owner.swap != nil {
		n.owner.swap.missed, n.seen = true, false
		return // the outcome of the downgrade in flight decides
	}
	c.gone(now, n)
}
