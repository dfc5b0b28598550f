package queue

import "time"

// Whoever has more than one entry ahead has to know that all of them are gone when
// the nearest goes, and a listing that finds it out takes a round trip while nobody
// holds the lock. So it is taken before, where it can be told when: a client that has
// waited for the lock lately knows its pace, how long it was from one holder to the
// next, and lists when the nearest should hold the lock by now. If that is so, the
// nearest is alone on the list, and its end is the grant. To watch the second nearest
// as well would be surer, but then each release would wake two.
//
// Nothing else is granted by it than without: a place is clear when a listing taken
// after its own creates, less what was since seen to go, has nothing that blocks.

const (
	// maxForesight bounds the listings that are taken in vain for one wait.
	maxForesight = 3
	// maxForeseen is how long a queue may be that is listed so.
	maxForeseen = 256
	// maxPaces is of how many queues the pace is remembered.
	maxPaces = 64
)

// waits notes that a place begins to wait for all that is ahead of it.
func (p *place) waits(now time.Duration) {
	if w := p.waiting(); w.ahead == 0 {
		w.from, w.ahead = now, len(p.ahead)
	}
}

// learn takes the pace of the queue from a wait that is over.
func (c *Core) learn(now time.Duration, p *place) {
	w := p.wait
	if w == nil || w.ahead < 2 {
		return
	}
	step := (now - w.from) / time.Duration(w.ahead)
	last, known := c.paces[p.parent]
	switch {
	case known:
		step = (3*last + step) / 4
	case c.paces == nil || len(c.paces) >= maxPaces:
		c.paces = map[string]time.Duration{}
	}
	c.paces[p.parent] = step
}

// foresee says when to list before the nearest goes, if that can be told.
func (c *Core) foresee(now time.Duration, p *place) {
	w := p.waiting()
	p.ranging, w.rangeAt = false, 0
	step, known := c.paces[p.parent]
	before := len(p.ahead) - 1
	if !known || before < 1 || before > maxForeseen || w.foreseen >= maxForesight || !p.foreseeable() || c.standing(p.parent, p.blocker) != nil {
		return
	}
	// Nobody knows for how long the first has held it, half a step on the average: after
	// as many steps as there are before the nearest, the nearest holds it. Of many
	// steps some less, as they are not alike: another listing follows then.
	in := step * time.Duration(8*before+1) / 9
	if in < c.lookAgain()/2 {
		w.rangeAt = now + in
		p.claim.retry(w.rangeAt)
	}
}

// notAhead drops the intent to list ahead of time.
func (p *place) notAhead() {
	if p.wait != nil {
		p.wait.rangeAt = 0
	}
}

// foreseeable reports whether an event can grant the place at all.
func (p *place) foreseeable() bool {
	return p.kind == Exclusive && p.role != leases && p.role != fixed && !p.relist && !p.claim.spec.Try && p.founded()
}

// ranges lists if it is time to, and reports whether such a listing is under way.
// What is told to be gone meanwhile is not in it: a connection tells in order.
func (c *Core) ranges(now time.Duration, p *place) bool {
	w := p.wait
	if w == nil || w.rangeAt == 0 || now < w.rangeAt {
		return p.ranging
	}
	w.rangeAt, p.ranging = 0, true
	w.foreseen++
	p.claim.retry(now + c.lookAgain())
	c.send(Request{Kind: List, Path: p.parent}, func(now time.Duration, r Reply) {
		if p.clear || !p.ranging {
			return
		}
		if c.answers(now, p, r) {
			c.listed(now, p, r.Children)
		}
		p.ranging = false
	})
	return true
}
