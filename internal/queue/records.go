package queue

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Lock-delay. With each entry an acquire creates a record, a persistent znode next to the
// queue that has the entry's prefix as its name. It deletes the record directly before
// the entry. A holder that crashes leaves its record. If a waiter that would be granted
// finds such a record, it waits for the delay, counted from when its client first saw
// the record, and then removes it. A waiter that crashes leaves a record too, because
// other clients cannot tell whether it had been granted.
//
// Clients that do not live as long as the delay, such as cron jobs that only try, would
// each start the delay again. So the first client that sees a record marks it by a
// setData. Later clients count from the mark: from the record's mtime to the ctime of
// their own record, both by the servers' clock. Package queue uses no other wall clock. If
// that clock is set forward in between, the delay is shorter.

// leftoverRecords are the records that a listing showed without their entries.
type leftoverRecords struct {
	seen  map[string]time.Duration // by name, when the client, or another that marked it, first saw each
	dated bool                     // the marks of other clients were read
}

// Held returns the path of the parent of a queue's records.
func Held(path string) string { return path + "-held" }

// Done returns the path of the record of a lock's last run. It is persistent, so it cannot be a
// child of the lock's znode, which servers delete when it is empty.
func Done(path string) string { return path + "-done" }

// IsRecord reports whether a znode of this name, below [Held], is a record: its name is an
// entry's without the number. Other znodes are possible there, such as the entries of a
// lock that has this path.
func IsRecord(name string) bool {
	e, class := ParseName(name + "0000000000")
	return class == Contender && isGUID(e.GUID)
}

// listRecords lists the queue between two listings of its records. A record in both
// whose entry is not in the queue is left over. The record existed before the listing of
// the queue, so its entry was created before. A client that releases an entry deletes the
// record first.
func (c *Core) listRecords(p *position) {
	var before, queue Reply
	dir := Held(p.parent)
	c.send(Request{Kind: List, Path: dir}, func(_ time.Duration, r Reply) { before = r })
	c.send(Request{Kind: List, Path: p.parent}, func(_ time.Duration, r Reply) { queue, p.listed = r, true })
	c.send(Request{Kind: List, Path: dir}, func(now time.Duration, after Reply) {
		// All three have to succeed; the first failure decides what follows. If their
		// parent is missing, there are no records.
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
		// Sorted, because the lists may be long.
		entries, later := slices.Sorted(slices.Values(queue.Children)), slices.Sorted(slices.Values(after.Children))
		c.sight(now, p, slices.DeleteFunc(before.Children, func(name string) bool {
			i, _ := slices.BinarySearch(entries, name)
			there := i < len(entries) && strings.HasPrefix(entries[i], name)
			_, still := slices.BinarySearch(later, name)
			return there || !IsRecord(name) || !still
		}))
		c.listed(now, p, queue.Children)
	})
}

// sight stores the leftover records. The delay counts from when the client first saw a
// record, not the acquire. Otherwise each try would start the delay again.
func (c *Core) sight(now time.Duration, p *position, left []string) {
	before := c.sights[p.parent]
	delete(c.sights, p.parent)
	p.leftover = nil
	if len(left) == 0 {
		return
	}
	seen := map[string]time.Duration{}
	for _, name := range left {
		seen[name] = now
		if at, known := before[name]; known {
			seen[name] = at
		}
	}
	c.sights[p.parent], p.leftover = seen, &leftoverRecords{seen: seen}
}

// delayed reports whether a position at the head of its queue has to wait for the
// lock-delay. After the delay it removes the records.
func (c *Core) delayed(now time.Duration, p *position) bool {
	if p.delay == 0 || p.leftover == nil {
		return false
	}
	var until time.Duration
	var last string
	for name, at := range p.leftover.seen {
		if at+p.delay > until || at+p.delay == until && name < last {
			until, last = at+p.delay, name
		}
	}
	if until <= now {
		for name := range p.leftover.seen {
			// If a delete fails, the next client waits again and retries.
			c.send(Request{Kind: Delete, Path: Held(p.parent) + "/" + name}, func(time.Duration, Reply) {})
		}
		p.leftover = nil
		delete(c.sights, p.parent)
		return false
	}
	if !p.leftover.dated {
		c.date(p)
		return true
	}
	if p.acquire.spec.Try {
		c.failLocked(now, p.acquire, "")
		return true
	}
	c.block(p, blocker{})
	c.watchOwnNodes(p.acquire)
	c.signalWaiting(p, Held(p.parent)+"/"+last, 0, nil)
	p.acquire.retry(until)
	return true
}

// date reads when the leftover records were marked, marks those that were not, and then
// decides about the position again.
func (c *Core) date(p *position) {
	var own int64
	records := p.leftover
	left := 1 + len(records.seen)
	read := func(name string, take func(now time.Duration, r Reply)) {
		c.send(Request{Kind: Get, Path: Held(p.parent) + "/" + name}, func(now time.Duration, r Reply) {
			left--
			if p.membership != present || p.acquire.phase != working {
				return
			}
			if r.Code == OK {
				take(now, r)
			}
			if left == 0 {
				// A record that cannot be read counts from when this client first saw it.
				records.dated, p.query = true, idle
				c.decide(now, p)
			}
		})
	}
	p.query = reading
	read(p.record.name, func(_ time.Duration, r Reply) { own = r.Ctime })
	for _, name := range slices.Sorted(maps.Keys(records.seen)) {
		read(name, func(now time.Duration, r Reply) {
			if r.Version == 0 {
				c.send(Request{Kind: Set, Path: Held(p.parent) + "/" + name, Data: r.Data}, func(time.Duration, Reply) {})
				return
			}
			// Reduced by more than the rates of two clocks may differ.
			known := time.Duration(own-r.Mtime) * time.Millisecond * 15 / 16
			// A mark that is newer than this acquire's own record proves nothing. A clock
			// that was set back may make it look older.
			if at := now - known; own != 0 && known > 0 && r.Mzxid < p.record.czxid && at < records.seen[name] {
				records.seen[name] = at
			}
		})
	}
}
