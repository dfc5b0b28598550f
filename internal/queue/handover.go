package queue

import (
	"slices"
	"time"
)

// Entries of one client stand one behind the other in a queue, and the one behind
// need not hear from the servers that the one ahead is given up: its client does
// it. So whoever gives a place up strikes it off the lists of the client's own
// places behind it, at once; its delete goes out behind. Order and tokens stay as
// they are. spec/handover.pml has the rule, and what breaks without each part:
//
//   - A place that stood alone, clear and exclusive, takes all with it that was
//     ahead of it, since that was gone when it was cleared. Any other goes by
//     itself: a cancelled waiter proves nothing of who is ahead of it, and a
//     reader nothing of the readers that were writers.
//   - It is the blocking function over what remains that grants, not the turn.
//   - Nothing is granted by it while a part of what one read brought is untold
//     (see [Core.Release]): the news that the heir's own znode is gone may be there.
//   - Nothing is handed over while a guarded write of the hold's is not answered: it
//     may be done as long as the hold's znode is there.
//
// A waiter does not watch an entry of its own client's for its end, then.

// A lane is what this client has at one queue.
type lane struct {
	places []*place          // in the order in which they came
	latest *place            // that was given up
	given  map[string]*place // of given up places, by the names of entries that are not known to be gone
}

// enter notes a place.
func (c *Core) enter(p *place) {
	l := c.lanes[p.parent]
	if l == nil {
		l = &lane{}
		c.lanes[p.parent] = l
	}
	l.places = append(l.places, p)
}

// quit forgets a place.
func (c *Core) quit(p *place) {
	p.loose = !p.founded()
	p.over, p.behind = true, nil
	if l := c.lanes[p.parent]; l != nil {
		if i := slices.Index(l.places, p); i >= 0 {
			l.places = slices.Delete(l.places, i, i+1)
		}
		c.close(p.parent, l)
	}
}

func (c *Core) close(parent string, l *lane) {
	if len(l.places)+len(l.given) == 0 {
		delete(c.lanes, parent)
	}
}

// give keeps the names of a place that is given up, for listings that still show
// them. It keeps no names that may come to be another's.
func (c *Core) give(p *place) {
	for _, n := range p.nodes {
		if n.name == "" || n.named != byGUID || n.state == absent {
			continue
		}
		l := c.lanes[p.parent]
		if l == nil {
			l = &lane{}
			c.lanes[p.parent] = l
		}
		if l.given == nil {
			l.given = map[string]*place{}
		}
		l.given[n.name], l.latest = p, p
	}
}

// forget drops the name of a znode that is gone.
func (c *Core) forget(n *node) {
	if l := c.lanes[n.parent]; l != nil {
		delete(l.given, n.name)
		c.close(n.parent, l)
	}
}

// left tells this client's places behind one that was given up. handed says that
// its owner has ended with it: if not, as when a hold was lost, those behind ask
// the servers.
func (c *Core) left(now time.Duration, e *place, handed bool) {
	l := c.lanes[e.parent]
	if l == nil || e.role == leases || e.role == fixed || c.closed != nil {
		return
	}
	for _, p := range slices.Clone(l.places) {
		if p.over || p.clear || p.claim.phase != working {
			continue
		}
		if handed && p.names == e.names && p.role == e.role && e.certain() {
			c.inherit(now, p, e)
		}
		if !p.over && !p.listing && e.owned(p.blocker) && c.connected() {
			c.watchBlocker(now, p)
		}
	}
}

// certain reports whether the entries that have the place's names are its own. Names
// without a GUID may have come to be another's, unless a watch would have told.
func (p *place) certain() bool {
	return !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.named != byGUID && !n.seen })
}

// inherit strikes a place that was given up off the list of one behind it.
func (c *Core) inherit(now time.Duration, p, e *place) {
	if !p.drop(e) || p.listing || p.blocker == "" || !p.struck(p.blocker) {
		return
	}
	p.blocker = ""
	if !c.connected() {
		return // the next connection begins with a listing
	}
	b, blocked := Blocker(p.kind, p.ahead)
	switch {
	case !blocked && !p.relist, blocked && c.standing(p.parent, b.Name) != nil:
		c.line(now, p)
	default:
		c.look(p)
	}
}

// drop takes a place that was given up off the list of who is ahead, and reports
// whether it was there.
func (p *place) drop(e *place) bool {
	own := func(a Entry) bool { return e.owned(a.Name) }
	at := slices.IndexFunc(p.ahead, own) // a hold is the first, mostly
	switch {
	case at < 0:
		return false
	case e.alone:
		for at < len(p.ahead) && own(p.ahead[at]) {
			at++
		}
		p.ahead = p.ahead[at:]
		if p.relist { // with fewer ahead nothing else can change
			p.reckon()
		}
	default:
		p.without(own)
	}
	return true
}

// without takes entries off the list of who is ahead, which may be shared with that
// of a place that joined behind.
func (p *place) without(gone func(Entry) bool) {
	p.ahead = slices.DeleteFunc(slices.Clone(p.ahead), gone)
}

// discount takes those off a listing that this client has given up.
func (c *Core) discount(p *place) {
	l := c.lanes[p.parent]
	if l == nil || len(l.given) == 0 {
		return
	}
	for i := len(p.ahead) - 1; i >= 0; i-- {
		e := l.given[p.ahead[i].Name]
		if e == nil || e.names != p.names || e.role != p.role {
			continue
		}
		p.drop(e)
		i = min(i, len(p.ahead))
	}
}

// reckon says whether an event alone grants nothing at the place.
func (p *place) reckon() {
	p.relist = p.delay > 0 || p.kind == Exclusive && slices.ContainsFunc(p.ahead, Entry.Writer)
}

// struck reports whether nobody of this name is on the place's list any more.
func (p *place) struck(name string) bool {
	for _, a := range slices.Backward(p.ahead) { // mostly it is the nearest
		if a.Name == name {
			return false
		}
	}
	return true
}

// owned reports whether an entry of this name is the place's, or was before a
// downgrade.
func (p *place) owned(name string) bool {
	return name != "" && (slices.ContainsFunc(p.nodes, func(n *node) bool { return n.name == name }) || slices.Contains(p.were, name))
}

// standing returns the place of this client's that an entry is of, if it is known
// to be there.
func (c *Core) standing(parent, name string) *place {
	l := c.lanes[parent]
	if l == nil {
		return nil
	}
	for _, p := range slices.Backward(l.places) {
		for _, n := range p.nodes {
			if n.name == name && n.state == alive {
				return p
			}
		}
	}
	return nil
}

// await leaves a watch on the entry that is waited for, unless it is this client's
// own, of whose end it will know.
func (c *Core) await(now time.Duration, p *place) {
	own := c.standing(p.parent, p.blocker)
	if own == nil || p.claim.spec.Try {
		c.watchBlocker(now, p)
		return
	}
	if p.behind != nil {
		c.watchOwns(own.claim) // which has to be seen; see [Core.follow]
	}
	p.claim.retry(now + c.lookAgain())
	c.tell(p, p.parent+"/"+p.blocker, len(p.ahead), own.claim.spec.Data)
}

// Entries returns the paths of the znodes that a claim has in queues, as far as
// they are known to have been made. It is for tests.
func (c *Core) Entries(id ID) []string {
	cl := c.claim(id)
	if cl == nil {
		return nil
	}
	var all []string
	for _, n := range cl.nodes() {
		if n.name != "" {
			all = append(all, n.path())
		}
	}
	return all
}

// Passable reports whether a hold may be passed on to another owner as it is: it is
// held beyond doubt, for a while, and nothing that the former owner began under it
// is to come.
func (c *Core) Passable(now time.Duration, id ID) bool {
	c.advance(now)
	cl := c.claim(id)
	return cl != nil && cl.phase == held && cl.swap == nil && !cl.revoked && cl.guards == 0 && !c.amid &&
		c.connected() && !c.beat.jeopardy && c.deadline.Ahead(now) >= c.session.Timeout/8
}
