package queue

import (
	"maps"
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
//
// Clients that do not live as long as the delay, a cron job's that only try, would
// each begin to wait anew. So whoever sees a record first marks it, by a setData,
// and the next ones count from the mark: from the record's mtime to the ctime of
// their own record, both by the servers' clock. That is the one place where a wall
// clock counts; one that is set forward in between shortens the delay.

// Held returns the path of the znode below which a queue's records are.
func Held(path string) string { return path + "-held" }

// IsRecord reports whether a znode of this name, below [Held], is a record: named as an
// entry without its number. Others' may stand beside, as the entries of a lock that is
// itself named so.
func IsRecord(name string) bool {
	e, class := ParseName(name + "0000000000")
	return class == Contender && isGUID(e.GUID)
}

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
			return there || !IsRecord(name) || !slices.Contains(after.Children, name)
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
	p.seen, p.dated = nil, false
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
	if !p.dated {
		c.date(p)
		return true
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

// date asks of the records that are left over since when they are marked, marks
// those that are not, and looks at the place again.
func (c *Core) date(p *place) {
	var own int64
	left := 1 + len(p.seen)
	read := func(name string, take func(now time.Duration, r Reply)) {
		c.send(Request{Kind: Get, Path: Held(p.parent) + "/" + name}, func(now time.Duration, r Reply) {
			left--
			if p.over || p.claim.phase != working {
				return
			}
			if r.Code == OK {
				take(now, r)
			}
			if left == 0 {
				// What could not be read counts from this client's own sight.
				p.dated, p.listing = true, false
				c.line(now, p)
			}
		})
	}
	p.listing = true
	read(p.record.name, func(_ time.Duration, r Reply) { own = r.Ctime })
	for _, name := range slices.Sorted(maps.Keys(p.seen)) {
		read(name, func(now time.Duration, r Reply) {
			if r.Version == 0 {
				c.send(Request{Kind: Set, Path: Held(p.parent) + "/" + name, Data: r.Data}, func(time.Duration, Reply) {})
				return
			}
			// Less what two clocks may differ by, and more.
			known := time.Duration(own-r.Mtime) * time.Millisecond * 15 / 16
			// A mark that is younger than one's own record tells nothing, whatever
			// a clock that was set back says.
			if at := now - known; own != 0 && known > 0 && r.Mzxid < p.record.czxid && at < p.seen[name] {
				p.seen[name] = at
			}
		})
	}
}
