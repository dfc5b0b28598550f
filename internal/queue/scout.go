package queue

import (
	"slices"
	"time"
)

// Whoever has more than one entry ahead has to know that all of them are gone when
// the nearest goes, and a listing that finds it out takes a round trip while nobody
// holds the lock. So it is taken before: the entry that is the second nearest is
// watched as well, as a scout. Once that is gone the nearest holds the lock, mostly,
// and a listing that is taken meanwhile leaves the nearest alone on the list. Its
// end is then a grant.
//
// Nothing else is granted by it than without: a place is clear when a listing taken
// after its own creates, less what was since seen to go, has nothing that blocks.

// post leaves a watch on the scout, where there is to be one. An exclusive place
// that waits for another client's needs one, if an event can grant it at all.
func (c *Core) post(now time.Duration, p *place) {
	p.ranging = false
	if p.kind != Exclusive || p.role == leases || p.role == fixed || p.relist || p.claim.spec.Try || !p.founded() {
		return
	}
	s, ok := p.second()
	switch {
	case !ok:
		p.scout = ""
		return
	case p.scout == s.Name, c.standing(p.parent, p.blocker) != nil, c.standing(p.parent, s.Name) != nil:
		return
	}
	p.scout = s.Name
	c.watchScout(p)
}

// second is the entry that would block if the blocker were gone.
func (p *place) second() (Entry, bool) {
	i := slices.IndexFunc(p.ahead, func(e Entry) bool { return e.Name == p.blocker })
	return Blocker(p.kind, p.ahead[:max(i, 0)])
}

func (c *Core) watchScout(p *place) {
	name := p.scout
	c.send(Request{Kind: Get, Path: p.parent + "/" + name, Watch: true}, func(now time.Duration, r Reply) {
		switch {
		case p.over || p.scout != name:
		case r.Code == NoNode:
			c.scouted(now, p)
		case r.Code != OK:
			p.scout = "" // it is not needed, and posted anew when the claim is looked at again
		}
	})
}

// scouted takes it that the scout is gone.
func (c *Core) scouted(now time.Duration, p *place) {
	name := p.scout
	p.scout = ""
	p.without(func(e Entry) bool { return e.Name == name })
	if p.listing || p.clear || p.blocker == "" || p.claim.phase != working {
		return // who looks again already
	}
	if _, more := p.second(); !more {
		return
	}
	p.ranging = true
	c.send(Request{Kind: List, Path: p.parent}, func(now time.Duration, r Reply) {
		if p.clear || !p.ranging {
			return
		}
		if c.answers(now, p, r) {
			c.listed(now, p, r.Children)
		}
		p.ranging, p.struckOut = false, nil
	})
}

// since takes those off a listing whose end was told while it was under way.
func (p *place) since() {
	for _, name := range p.struckOut {
		p.without(func(e Entry) bool { return e.Name == name })
	}
	p.struckOut = nil
}
