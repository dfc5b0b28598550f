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

// count lists the leases. Only an acquire that has to wait sets a watch. A holder's watch
// would report every release of the other holders.
func (c *Core) count(p *position, watch bool) {
	p.query = reading
	if !p.agreed() {
		l := new(limit)
		p.limit = l
		c.send(Request{Kind: Get, Path: p.parent}, func(_ time.Duration, r Reply) { l.code, l.version, l.data = r.Code, r.Version, r.Data })
	}
	c.send(Request{Kind: List, Path: p.parent, Watch: watch}, func(now time.Duration, r Reply) {
		if c.answers(now, p, r) {
			c.counts(now, p, r.Children, watch)
		}
	})
}

// counts handles a listing of the leases.
func (c *Core) counts(now time.Duration, p *position, children []string, watched bool) {
	l := Sort(children)
	for _, n := range p.nodes {
		if !slices.Contains(children, n.name) {
			c.gone(now, n)
			return
		}
	}
	if len(l.Malformed) > 0 {
		c.fail(now, p.acquire, ErrExhausted)
		return
	}
	p.ahead = slices.DeleteFunc(l.Queue, func(e Entry) bool { return !e.Lease() || p.owns(e) })
	over := len(p.ahead) + len(p.nodes) - p.sem.Of
	others := c.others(p.parent, p.ahead)
	if code := p.limit.code; !p.agreed() && (code == Unknown || code == NotApplied) {
		p.acquire.retry(now + retryPause) // the next listing repeats the lost request
		return
	}
	if !p.agreed() && !c.agree(p, others) {
		c.fail(now, p.acquire, ErrPermits)
		return
	}
	switch {
	case over <= 0:
		c.clear(now, p)
	case p.acquire.spec.Try && others+len(p.nodes) > p.sem.Of:
		c.failLocked(now, p.acquire, "")
	case !watched:
		c.watchOwnNodes(p.acquire)
		c.count(p, true)
	default:
		p.acquire.retry(now + c.recheckDelay())
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

// A limit is the stored number of permits, as read.
type limit struct {
	code    Code
	version int32
	data    []byte
	agreed  bool // it was compared with the permits of this acquire
}

// agreed reports whether the limit was read and compared.
func (p *position) agreed() bool { return p.limit != nil && p.limit.agreed }

// agree reports whether the stored number of permits equals the acquire's. The layout does
// not define where to store it, so zklock writes it to the data of the leases' parent. The
// acquire that holds the gate writes it if no other lease exists or none is stored yet.
func (c *Core) agree(p *position, others int) bool {
	l := p.limit
	if l.code != OK {
		return true // without permission to read it, there is nothing to compare
	}
	l.agreed = true
	n, err := strconv.Atoi(string(l.data))
	switch {
	case err == nil && n == p.sem.Of:
	case err == nil && others > 0:
		return false
	case err == nil || len(l.data) == 0:
		c.note(p, l.version)
	}
	return true
}

// note stores the number of permits. It ignores a refusal and a version that has changed.
// After a lost answer it writes again: if the first write was applied, the version has
// changed.
func (c *Core) note(p *position, version int32) {
	c.send(Request{Kind: Set, Path: p.parent, Data: strconv.AppendInt(nil, int64(p.sem.Of), 10), Version: version},
		func(_ time.Duration, r Reply) {
			if p.membership == present && (r.Code == Unknown || r.Code == NotApplied) {
				c.note(p, version)
			}
		})
}

// tryGate decides whether a try waits at a gate that another acquire holds, perhaps only
// briefly. If too few permits are left, the try fails. Otherwise the gate will soon be
// free, and the try waits for the entry ahead. If the listing fails, the try starts with
// the gate again. The acquire ahead may create leases and then wait with the gate, so the
// try also watches the leases.
func (c *Core) tryGate(p *position, ahead string) {
	dir := p.sem.Path + "/leases"
	was := p.blocker.name
	p.query = reading
	c.send(Request{Kind: List, Path: dir, Watch: true}, func(now time.Duration, r Reply) {
		if p.membership != present || p.clearance != notCleared || p.blocker.name != was || p.acquire.phase != working {
			return
		}
		p.query = idle
		switch r.Code {
		case OK, NoNode:
			held := slices.DeleteFunc(Sort(r.Children).Queue, func(e Entry) bool { return !e.Lease() })
			if c.others(dir, held)+p.sem.Permits > p.sem.Of {
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
		case Unknown, NotApplied:
			p.acquire.retry(now + retryPause)
		case SessionOver:
		default:
			c.fail(now, p.acquire, r.Err)
		}
	})
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
