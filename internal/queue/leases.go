package queue

import (
	"slices"
	"strconv"
	"time"
)

// A semaphore in Curator's layout (InterProcessSemaphoreV2) is a gate and a set
// of leases. Whoever holds the gate adds its leases, and keeps the gate until
// there are no more of them than the semaphore has permits. So they are granted
// in the order of the gate's queue, and whoever takes several can't be stuck
// half-way beside another.
//
// What makes it safe is not the gate but the count: a claim is granted on a
// listing, read after its own leases were made, in which there are not too many.
// Of the leases that exist and are granted, take the one made last: the listing
// it was granted on held all the others.

// count lists the leases. Only a claim that has to wait leaves a watch, as one
// left behind by a holder would tell it of every other holder's release.
func (c *Core) count(p *place, watch bool) {
	p.listing = true
	if !p.agreed {
		l := new(limit)
		p.limit = l
		c.send(Request{Kind: Get, Path: p.parent}, func(_ time.Duration, r Reply) { *l = limit{r.Code, r.Version, r.Data} })
	}
	c.send(Request{Kind: List, Path: p.parent, Watch: watch}, func(now time.Duration, r Reply) {
		if c.answers(now, p, r) {
			c.counts(now, p, r.Children, watch)
		}
	})
}

// counts takes a listing of the leases.
func (c *Core) counts(now time.Duration, p *place, children []string, watched bool) {
	l := Sort(children)
	for _, n := range p.nodes {
		if !slices.Contains(children, n.name) {
			c.gone(now, n)
			return
		}
	}
	if len(l.Malformed) > 0 {
		c.fail(now, p.claim, ErrExhausted)
		return
	}
	p.ahead = slices.DeleteFunc(l.Queue, func(e Entry) bool { return !e.Lease() || p.owns(e) })
	over := len(p.ahead) + len(p.nodes) - p.sem.Of
	others := c.others(p.parent, p.ahead)
	if code := p.limit.code; !p.agreed && (code == Unknown || code == NotApplied) {
		p.claim.retry(now + retryPause) // what was lost is asked again with another listing
		return
	}
	if !p.agreed && !c.agree(p, others) {
		c.fail(now, p.claim, ErrPermits)
		return
	}
	switch {
	case over <= 0:
		c.clear(now, p)
	case p.claim.spec.Try && others+len(p.nodes) > p.sem.Of:
		c.fail(now, p.claim, ErrLocked)
	case !watched:
		c.watchOwns(p.claim)
		c.count(p, true)
	default:
		p.claim.retry(now + c.lookAgain())
		if len(p.ahead) > 0 {
			c.tell(p, p.parent+"/"+p.ahead[0].Name, over, nil)
		}
	}
}

// others returns how many of these leases are not this client's own on their
// way out.
func (c *Core) others(parent string, entries []Entry) int {
	n := 0
	for _, e := range entries {
		if !c.leaving(parent, e.Name) {
			n++
		}
	}
	return n
}

// A limit is what was read of the number of permits.
type limit struct {
	code    Code
	version int32
	data    []byte
}

// agree compares the number of permits with what others hold to, and reports
// whether they agree. The layout has no place for it, so zklock keeps it as a
// number in the data of the leases' parent: the claim under the gate writes it
// when nobody else has a lease, or nobody has written one yet.
func (c *Core) agree(p *place, others int) bool {
	l := p.limit
	if l.code != OK {
		return true // whoever may not read it does without
	}
	p.agreed = true
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

// note writes the number of permits down. Whoever may not write it, or is too
// late, does without. After a lost answer it is written again: if it was written
// at first, the version has moved.
func (c *Core) note(p *place, version int32) {
	c.send(Request{Kind: Set, Path: p.parent, Data: strconv.AppendInt(nil, int64(p.sem.Of), 10), Version: version},
		func(_ time.Duration, r Reply) {
			if !p.over && (r.Code == Unknown || r.Code == NotApplied) {
				c.note(p, version)
			}
		})
}

// tryGate decides what a try does at a gate that another has: it may only be
// passing through. With too few permits left it would have to wait; else the
// gate will be free in a moment. Only then is the one ahead waited for: if the
// listing fails the try begins with the gate again. And since the one ahead may
// be about to make permits of its own and then wait, keeping the gate, the try
// goes on looking at the permits.
func (c *Core) tryGate(p *place, ahead string) {
	dir := p.sem.Path + "/leases"
	was := p.blocker
	p.listing = true
	c.send(Request{Kind: List, Path: dir, Watch: true}, func(now time.Duration, r Reply) {
		if p.over || p.clear || p.blocker != was || p.claim.phase != working {
			return
		}
		p.listing = false
		switch r.Code {
		case OK, NoNode:
			held := slices.DeleteFunc(Sort(r.Children).Queue, func(e Entry) bool { return !e.Lease() })
			if c.others(dir, held)+p.sem.Permits > p.sem.Of {
				c.fail(now, p.claim, ErrLocked)
				return
			}
			if r.Code == NoNode { // which leaves no watch
				p.claim.retry(now + retryPause)
			}
			// Again, for the answer to an earlier watch may be lost.
			p.blocker = ahead
			c.watchOwns(p.claim)
			c.watchBlocker(now, p)
		case Unknown, NotApplied:
			p.claim.retry(now + retryPause)
		case SessionOver:
		default:
			c.fail(now, p.claim, r.Err)
		}
	})
}

// passGate gives the gate to the next one, now that the leases are counted.
func (c *Core) passGate(now time.Duration, cl *claim) {
	i := slices.IndexFunc(cl.places, func(p *place) bool { return p.role == gate })
	if i < 0 {
		return
	}
	p := cl.places[i]
	cl.places = slices.Delete(cl.places, i, i+1)
	c.abandon(now, []*place{p}, nil, &parting{}, true, true)
}
