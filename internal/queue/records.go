package queue

import (
	"slices"
	"strings"
	"time"
)

// Lock-delay. With each entry its claim makes a record, a persistent znode
// beside the queue that is named by the entry's prefix, and deletes it before
// the entry, in the same breath. A holder that vanishes leaves it behind.
// Whoever is about to be granted and finds such a record waits the delay, from
// when its client first saw it, and then removes it. A waiter that vanishes leaves one
// too: nobody can tell how far it had come.

// Held returns the path of the znode below which a queue's records are.
func Held(path string) string { return path + "-held" }

// lookAtRecords lists the queue between two listings of its records. A record
// in both, of an entry that is not in the queue, is left over: it was there
// before, so its entry was made before, and an entry that leaves in order takes
// its record away first.
func (c *Core) lookAtRecords(p *place) {
	var before, queue Reply
	dir := Held(p.parent)
	c.send(Request{Kind: List, Path: dir}, func(_ time.Duration, r Reply) { before = r })
	c.send(Request{Kind: List, Path: p.parent}, func(_ time.Duration, r Reply) { queue, p.listed = r, true })
	c.send(Request{Kind: List, Path: dir}, func(now time.Duration, after Reply) {
		// All three have to succeed; the first failure tells what to do. Without
		// their parent there are no records.
		for _, records := range []*Reply{&before, &after} {
			if records.Code == NoNode {
				records.Code, records.Children = OK, nil
			}
		}
		if before.Code != OK {
			queue = before
		} else if queue.Code == OK && after.Code != OK {
			queue = after
		}
		if !c.answers(now, p, queue) {
			return
		}
		c.sight(now, p, slices.DeleteFunc(before.Children, func(name string) bool {
			there := slices.ContainsFunc(queue.Children, func(child string) bool { return strings.HasPrefix(child, name) })
			return there || !slices.Contains(after.Children, name)
		}))
		c.listed(now, p, queue.Children)
	})
}

// sight takes note of the records that are left over. It is the client's first
// sight that counts, not the claim's: a try gives up, and the next one would else
// begin to wait anew.
func (c *Core) sight(now time.Duration, p *place, left []string) {
	before := c.sights[p.parent]
	delete(c.sights, p.parent)
	p.seen = nil
	if len(left) == 0 {
		return
	}
	p.seen = map[string]time.Duration{}
	for _, name := range left {
		p.seen[name] = now
		if at, known := before[name]; known {
			p.seen[name] = at
		}
	}
	c.sights[p.parent] = p.seen
}

// delayed reports whether a place at the head of its queue has to keep off for
// a while. When that is over it removes the records.
func (c *Core) delayed(now time.Duration, p *place) bool {
	if p.delay == 0 || len(p.seen) == 0 {
		return false
	}
	var until time.Duration
	var last string
	for name, at := range p.seen {
		if at+p.delay > until || at+p.delay == until && name < last {
			until, last = at+p.delay, name
		}
	}
	if until <= now {
		for name := range p.seen {
			// Whoever finds it again waits again, and tries again.
			c.send(Request{Kind: Delete, Path: Held(p.parent) + "/" + name}, func(time.Duration, Reply) {})
		}
		p.seen = nil
		delete(c.sights, p.parent)
		return false
	}
	if p.claim.spec.Try {
		c.fail(now, p.claim, ErrLocked)
		return true
	}
	p.blocker = ""
	c.watchOwns(p.claim)
	c.tell(p, Held(p.parent)+"/"+last, 0, nil)
	p.claim.retry(until)
	return true
}
