package queue

import (
	"math"
	"slices"
	"strings"
	"time"
)

// A waiter that learns of the deletion of its blocker does not know whether other entries
// ahead of it are left, so it lists the queue, which takes a round trip during which no
// client holds the lock. A marked release tells it. The holder P deletes its entry in a
// multi that first creates and deletes the mark X(P), a sibling with a name of its own:
//
//	multi{create X(P), delete X(P), delete P}
//
// P marks only if nothing was ahead of its exclusive entry when it was granted. So X(P)
// says: every entry up to P is gone. The waiter W behind P watches its own entry, P, and
// X(P) by one request. W is clear if it read the creation of X(P) after the answer to that
// request, and then the end of P, while P was its blocker. In all other cases, W lists the
// queue. spec/mark.pml has the rule, and shows what breaks without each part:
//
//   - X(P) alone grants nothing, because every client that may acquire the lock may create
//     it. An X(P) that exists before the watch is set counts for nothing. If the servers tell
//     the transaction of an event, X(P) and the end of P must be of one.
//   - The name of X(P) has the GUID and the number of P's entry, so no later entry has the same
//     mark, nor has an entry that another client creates with a copy of the GUID.
//   - P marks only if it knows of no other entry of its client below the lock whose delete
//     is unanswered: that entry may be ahead of P, if P was handed the lock in memory.
//   - A reader, a writer that downgraded, a lost hold, and a hold that did not wait delete
//     plainly. So does a hold whose successor is of the same client, which needs no mark.
//
// No listing shows a mark, because it exists only within one transaction. It uses up one
// sequence number of the lock.

const (
	markPrefix = "zklock-released-1-"
	// markLimit is the sequence number from which on releases use up no further numbers.
	markLimit = 1 << 30
	// markPause is how long a client marks no releases of a lock after the servers refused
	// a mark, for example because of a quota. It is also how long waiters set their watches
	// by separate requests after one request for all of them was not answered.
	markPause = 5 * time.Minute
	// maxUnmarked bounds the number of such locks that the core remembers.
	maxUnmarked = 64
)

// markState is what is known of the watch on a blocker's mark.
type markState uint8

const (
	markUnwatched markState = iota
	markRequested           // the watch is requested: an event before the answer proves nothing
	markWatched
	markSeen // the creation of the mark was read: if the blocker ends next, nothing is ahead
)

// Mark returns the name of the entry's mark; ok is false if its name has no GUID.
func (e Entry) Mark() (name string, ok bool) {
	if !isGUID(e.GUID) {
		return "", false
	}
	guid := strings.ToLower(strings.ReplaceAll(e.GUID, "-", ""))
	return markPrefix + guid + "-" + e.Name[len(e.Name)-digits:], true
}

// IsMark reports whether a child's name is that of a mark.
func IsMark(name string) bool {
	rest, ok := strings.CutPrefix(name, markPrefix)
	guid, number, _ := strings.Cut(rest, "-")
	_, numbered := sequence(number)
	return ok && isGUID(guid) && numbered
}

// markOf returns the path of the mark of a position's blocker, "" if it has none.
func (p *position) markOf(name string) string {
	e, _ := p.names.Parse(name)
	mark, ok := e.Mark()
	if !ok {
		return ""
	}
	return p.parent + "/" + mark
}

// markClears reports whether a mark can clear the position. Without one, the deletion of the
// blocker would not. A lock-delay needs the listing, which shows the records.
func (p *position) markClears() bool {
	if p.delay > 0 || p.acquire.spec.Try || p.role != member && p.role != gate {
		return false
	}
	i := slices.IndexFunc(p.ahead, func(e Entry) bool { return e.Name == p.blocker.name })
	if i < 0 || p.ahead[i].Kind != Exclusive {
		return false
	}
	_, blocked := Blocker(p.kind(), p.ahead[:i])
	return blocked || p.others || p.relist
}

// block sets the position's blocker, zero for none. It removes the watch on the former
// blocker's mark, which otherwise would stay on the server. If the server is too old to remove
// watches, no more marks are watched on this connection, so their number does not grow.
func (c *Core) block(p *position, b blocker) {
	if m := p.blocker.mark; (m == markRequested || m == markWatched) && c.connected() {
		c.removeWatch(p.markOf(p.blocker.name), func(Reply) {})
	}
	p.unfollow()
	c.unwatches(p)
	p.blocker = b
}

// removeWatch removes the data watch and the exists watch on a path. then gets the answer: NoNode
// if the server cannot remove watches, and NotApplied if it was only asked whether it can.
func (c *Core) removeWatch(path string, then func(Reply)) {
	delete(c.parentWatches, path) // it would be the same watch
	c.send(Request{Kind: Unwatch, Path: path}, func(_ time.Duration, r Reply) {
		c.keepsWatches = c.keepsWatches || r.Code == NoNode && r.Conn == c.session.Conn
		then(r)
	})
}

// watchTogether sets the watches of a waiter by one request: on its own entries, on its
// blocker, and on the blocker's mark. The servers report what has changed since the
// acquire's entries were created, so there is nothing to read.
func (c *Core) watchTogether(now time.Duration, p *position) {
	b := &p.blocker
	ask := Request{Kind: SetWatches, Zxid: p.nodes[0].czxid}
	var own []*node
	for _, n := range p.acquire.nodes() {
		switch {
		case n.state != alive || n.watch.requested():
		case n.named == byGUID && n.czxid == ask.Zxid:
			own, ask.Paths = append(own, n), append(ask.Paths, n.path())
		default:
			// Entries of another transaction have another zxid. Their watches are set before the
			// one on the blocker, so that its event does not come before their answers.
			c.watchOwn(n)
		}
	}
	ask.Paths = append(ask.Paths, p.parent+"/"+b.name)
	b.watch = watchRequested
	if !c.keepsWatches && p.markClears() {
		if ask.Path = p.markOf(b.name); ask.Path != "" {
			b.mark = markRequested
		}
	}
	c.watches(p, b.mark == markRequested)
	id := c.lastReq + 1
	for _, n := range own {
		n.watch, n.seen, n.bound, n.watchReq = ownRequested, false, true, id
	}
	p.acquire.retry(now + c.recheckDelay())
	name := b.name
	c.send(ask, func(now time.Duration, r Reply) {
		for _, n := range own {
			switch n.watchReq {
			case id:
				n.seen = r.Code == OK
			case 0: // an event before the answer said that it is deleted
			default:
				continue // watched again
			}
			n.watch.answer(r.Code == OK || n.watchReq == 0)
			c.proven(now, n)
		}
		if r.Code == Unknown {
			// A server that refuses watches because of a limit may close the connection
			// without an answer. Separate requests get an error.
			c.separateWatches = max(c.separateWatches, now+markPause)
		}
		if p.membership != present || p.blocker.name != name {
			return
		}
		switch r.Code {
		case OK:
			if p.blocker.mark == markRequested {
				p.blocker.mark = markWatched
			}
			if after := p.acquire.spec.TellAfter; after > 0 {
				p.acquire.retry(now + after)
			}
		case Unknown, NotApplied:
			p.blocker.watch, p.blocker.mark = watchFailed, markUnwatched
			p.acquire.retry(now + retryPause)
		case SessionOver:
		default:
			c.separateWatches, p.blocker.mark = math.MaxInt64, markUnwatched
			c.watchOwnNodes(p.acquire)
			c.awaitBlocker(now, p)
		}
	})
}

// markMade handles the creation of a znode that may be the mark of the position's
// blocker, in the transaction zxid. It reports whether it was.
func (p *position) markMade(path string, zxid int64) bool {
	switch m := p.blocker.mark; {
	case m == markUnwatched || path != p.markOf(p.blocker.name):
		return false
	case m == markRequested || m == markSeen && zxid != p.blocker.marked:
		p.blocker.mark = markUnwatched // it existed before, or is created again: that proves nothing
	default:
		p.blocker.mark, p.blocker.marked = markSeen, zxid
	}
	return true
}

// marks reports whether the release of the position's entry may be marked.
func (c *Core) marks(now time.Duration, p *position, s *swap) bool {
	if p.clearance != clearedAlone || !p.waited || p.kind() != Exclusive || len(p.were) > 0 || s != nil || p.record != nil ||
		p.role == fixed || !c.connected() || now < c.unmarked[p.parent] || c.handsOver(p) {
		return false
	}
	for _, n := range p.nodes {
		if e, _ := p.names.Parse(n.name); n.state != alive || n.named != byGUID || e.Seq >= markLimit {
			return false
		}
	}
	for _, n := range c.pendingDeletes {
		if n.parent == p.parent {
			return false
		}
	}
	return true
}

// handsOver reports whether a waiter of this client is directly behind the position.
func (c *Core) handsOver(p *position) bool {
	for _, o := range p.followers {
		if o.membership == present && o.kind() == Exclusive && p.owned(o.blocker.name) {
			return true
		}
	}
	return false
}

// releaseMarked deletes the entries of a position, whose state says so already, by a marked
// release.
func (c *Core) releaseMarked(p *position) {
	nodes := p.nodes
	mark := p.markOf(nodes[len(nodes)-1].name)
	ask := Request{Kind: MarkedDelete, Creates: []Creation{{Path: mark, Access: p.access}}, Paths: append([]string{mark}, paths(nodes)...)}
	c.send(ask, func(now time.Duration, r Reply) {
		// The operations are the create and the delete of the mark, then the deletes.
		failed := r.Failed - 2
		undone := r.Code != OK && r.Code != Unknown && r.Code != SessionOver && r.Code != NotApplied
		if undone && failed < 0 && r.Code != Undone && r.Code != NoNode {
			c.pauseMarks(now, p.parent)
		}
		for i, n := range nodes {
			d := r
			if undone && i != failed {
				d.Code = Undone // it is deleted plainly
			}
			c.deleted(now, n, d)
		}
	})
}

// pauseMarks makes the client release a lock without marks for markPause.
func (c *Core) pauseMarks(now time.Duration, parent string) {
	if c.unmarked == nil || len(c.unmarked) >= maxUnmarked {
		c.unmarked = map[string]time.Duration{}
	}
	c.unmarked[parent] = now + markPause
}
