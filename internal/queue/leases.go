package queue

import (
	"slices"
	"strconv"
	"time"
)

// A semaphore in Curator's layout (InterProcessSemaphoreV2) is a gate and a set of
// leases. An acquire takes the gate, adds its leases, and keeps the gate until there are
// no more leases than permits. So acquires are granted in the order of the gate's queue,
// and two acquires of several permits cannot block each other half-way.
//
// The count makes it safe, not the gate: an acquire is granted if a listing, read after
// its own leases were created, shows no more leases than permits. The listing that granted
// the newest of all granted leases included all the others.
//
// The number of permits is that of the acquire, or the size that the servers store. A
// stored size can change at any time. It is read after the listing, so that a listing that
// shows a state after the change is never compared with the size before it.

// count lists the leases, and then reads the stored size if the acquire follows it. Only an
// acquire that has to wait sets watches. A holder's watch would report every release of the
// other holders.
func (c *Core) count(p *position, watch bool) {
	p.query = reading
	if !p.agreed() {
		l := new(limit)
		p.limit = l
		c.send(Request{Kind: Get, Path: p.parent}, func(_ time.Duration, r Reply) { l.code, l.version, l.data = r.Code, r.Version, r.Data })
	}
	if p.sem.stored() {
		c.listAndSize(p, p.parent, watch, func(now time.Duration, list, size Reply) { c.countStored(now, p, list, size, watch) })
		return
	}
	c.send(Request{Kind: List, Path: p.parent, Watch: watch}, func(now time.Duration, r Reply) {
		if c.answers(now, p, r) {
			c.counts(now, p, r.Children, p.sem.Of, watch)
		}
	})
}

// counts compares a listing of the leases with the number of permits, of.
func (c *Core) counts(now time.Duration, p *position, children []string, of int, watched bool) {
	l := Sort(children)
	for _, n := range p.nodes {
		if !slices.Contains(children, n.name) {
			c.gone(now, n)
			return
		}
	}
	if len(l.Malformed) > 0 {
		c.fail(now, p.acquire, &ExhaustedError{p.parent})
		return
	}
	p.ahead = slices.DeleteFunc(l.Queue, func(e Entry) bool { return !e.Lease() || p.owns(e) })
	over := len(p.ahead) + len(p.nodes) - of
	others := c.others(p.parent, p.ahead)
	if code := p.limit.code; !p.agreed() && (code == Unknown || code == NotApplied) {
		p.acquire.retry(now + retryPause) // the next listing repeats the lost request
		return
	}
	if !p.agreed() && !c.agree(p, of, others) {
		c.fail(now, p.acquire, ErrPermits)
		return
	}
	switch {
	// The next acquire must not find the gate free before the number is written: it would not
	// notice that its own number differs.
	case over <= 0 && p.limit.note == noteSent:
		c.count(p, false) // its answer follows the one to the write
	case over <= 0 && p.limit.note == noteLost: // a retry is scheduled
	case over <= 0:
		c.clear(now, p)
	case p.acquire.spec.Try && others+len(p.nodes) > of:
		c.failLocked(now, p.acquire, "")
	case !watched:
		c.watchOwnNodes(p.acquire)
		c.count(p, true)
	default:
		c.watchOwnNodes(p.acquire) // the first count may have had no answer
		p.acquire.retry(now + c.recheckDelay())
		c.readSizeAgain(now, p)
		if len(p.ahead) > 0 {
			c.signalWaiting(p, p.parent+"/"+p.ahead[0].Name, over, nil)
		}
	}
}

// others returns how many of these leases are not pending deletes of this client.
func (c *Core) others(parent string, entries []Entry) int {
	n := 0
	for _, e := range entries {
		if !c.isPendingDelete(parent, e.Name) {
			n++
		}
	}
	return n
}

// A limit is the number of permits that is noted next to the leases, as read.
type limit struct {
	code    Code
	version int32
	data    []byte
	agreed  bool // it was compared with the permits of this acquire
	of      int  // what is written in its place; see [Core.note]
	note    note
}

// A note is the state of the write of a limit.
type note uint8

const (
	noteAnswered note = iota // also if nothing is to be written
	noteSent
	noteLost // the last attempt had no answer, or was refused for the moment
)

// agreed reports whether the limit was read and compared.
func (p *position) agreed() bool { return p.limit != nil && p.limit.agreed }

// agree reports whether the number of permits that is noted next to the leases equals the
// acquire's, of. The layout does not define where to note it, so zklock writes it to the data
// of the leases' parent. The acquire that holds the gate writes it if no other lease exists or
// none is noted yet. An acquire that follows the stored size always writes it, so that acquires
// with another number of their own fail.
func (c *Core) agree(p *position, of, others int) bool {
	l := p.limit
	if l.code != OK {
		return true // without permission to read it, there is nothing to compare
	}
	l.agreed = true
	n, err := strconv.Atoi(string(l.data))
	switch {
	case err == nil && n == of:
	case err == nil && others > 0 && !p.sem.stored():
		return false
	case err == nil || len(l.data) == 0:
		l.of = of
		c.note(p)
	}
	return true
}

// note writes the number of permits next to the leases. It ignores a refusal and a version
// that has changed. After a lost answer it writes again, after a pause: if the first write
// was applied, the version has changed.
func (c *Core) note(p *position) {
	l := p.limit
	l.note = noteSent
	c.send(Request{Kind: Set, Path: p.parent, Data: strconv.AppendInt(nil, int64(l.of), 10), Version: l.version},
		func(now time.Duration, r Reply) {
			switch {
			case p.membership != present || p.acquire.phase != working:
			case r.Code == Unknown || r.Code == NotApplied:
				l.note = noteLost
				p.acquire.retry(now + retryPause)
			default:
				l.note = noteAnswered
			}
		})
}

// noteAgain writes the numbers of permits again whose last attempt was lost.
func (c *Core) noteAgain(acq *acquire) {
	for _, p := range acq.positions {
		if p.limit != nil && p.limit.note == noteLost {
			c.note(p)
		}
	}
}

// tryGate decides whether a try waits at a gate that another acquire holds, perhaps only
// briefly. If too few permits are left, the try fails. Otherwise the gate will soon be
// free, and the try waits for the entry ahead. If the listing fails, the try starts with
// the gate again. The acquire ahead may create leases and then wait with the gate, so the
// try also watches the leases.
func (c *Core) tryGate(p *position, ahead string) {
	dir := LeasesPath(p.sem.Path)
	was := p.blocker.name
	p.query = reading
	if p.sem.stored() {
		c.listAndSize(p, dir, true, func(now time.Duration, list, size Reply) {
			if !p.triesGate(was) {
				return
			}
			again := p.query == outdated
			p.query = idle
			of, ok := c.storedSize(now, p, size)
			switch {
			case !ok:
			case again:
				c.tryGate(p, ahead)
			default:
				c.triedGate(now, p, ahead, list, of)
			}
		})
		return
	}
	c.send(Request{Kind: List, Path: dir, Watch: true}, func(now time.Duration, r Reply) {
		if p.triesGate(was) {
			p.query = idle
			c.triedGate(now, p, ahead, r, p.sem.Of)
		}
	})
}

// triesGate reports whether a try still waits at its gate for the same entry.
func (p *position) triesGate(was string) bool {
	return p.membership == present && p.clearance == notCleared && p.blocker.name == was && p.acquire.phase == working
}

// triedGate compares the leases with the number of permits, of, for a try at its gate.
func (c *Core) triedGate(now time.Duration, p *position, ahead string, r Reply, of int) {
	dir := LeasesPath(p.sem.Path)
	switch r.Code {
	case OK, NoNode:
		held := slices.DeleteFunc(Sort(r.Children).Queue, func(e Entry) bool { return !e.Lease() })
		if c.others(dir, held)+p.sem.Permits > of {
			c.failLocked(now, p.acquire, "")
			return
		}
		if r.Code == NoNode { // a listing of a missing znode sets no watch
			p.acquire.retry(now + retryPause)
		}
		// Repeated, because the answer to an earlier watch may be lost.
		c.block(p, blocker{name: ahead})
		if own := c.standing(p.parent, ahead); own != nil {
			p.follows(own)
		}
		c.watchOwnNodes(p.acquire)
		c.watchBlocker(now, p)
		c.readSizeAgain(now, p)
	case Unknown, NotApplied:
		p.acquire.retry(now + retryPause)
	case SessionOver:
	default:
		c.fail(now, p.acquire, r.Err)
	}
}

// passGate releases the gate after the leases were counted.
func (c *Core) passGate(now time.Duration, acq *acquire) {
	i := slices.IndexFunc(acq.positions, func(p *position) bool { return p.role == gate })
	if i < 0 {
		return
	}
	p := acq.positions[i]
	acq.positions = slices.Delete(acq.positions, i, i+1)
	c.abandon(now, []*position{p}, nil, &pendingRelease{}, true, true)
}
