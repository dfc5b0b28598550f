package queue

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The stored size of a semaphore is the number of its permits, in a persistent znode next to
// its gate and its leases, in the format of Curator's SharedCount. Any client may change it at
// any time. An acquire follows it by one rule: it is granted only if a listing of the leases
// shows at most n, and n was read after that listing. So once a change from m to n is
// committed, a listing that shows a state after the change is compared with n.
//
// Of all acquires, only the one that holds the gate counts leases and watches the size. So a
// larger size wakes that one, which passes the gate to the next.
//
// The size may never change again, so the client removes the watch when none of its acquires
// needs it. It does not do so in a shared session, where another user may need the same watch,
// nor on servers that cannot remove watches. There, at most maxSizeWatches such watches stay.
// With so many, an acquire that needs another one reads the size again every sizePause instead.

// sizeNode ends the path of the znode that stores a semaphore's size.
const sizeNode = "/size"

// SizePath returns the path of the znode that stores the size of the semaphore at path.
func SizePath(path string) string { return path + sizeNode }

// AppendSize appends a stored size to b, as Curator's SharedCount writes it: four bytes, of
// which the first is the most significant.
func AppendSize(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(int32(n))) }

// ParseSize returns the stored size that the data contain, and reports whether they contain
// one. It can be any number.
func ParseSize(data []byte) (n int, ok bool) {
	if len(data) != 4 {
		return 0, false
	}
	return int(int32(binary.BigEndian.Uint32(data))), true
}

// GatePath returns the path of the queue for the permits of the semaphore at path.
func GatePath(path string) string { return path + "/locks" }

// LeasesPath returns the path whose children are the permits of the semaphore at path.
func LeasesPath(path string) string { return path + "/leases" }

// stored reports whether the acquire follows the stored size.
func (s *Semaphore) stored() bool { return s.Of == 0 }

// A sizeWatch is a watch on a stored size that the servers may have.
type sizeWatch struct {
	users   int    // how many positions need it
	req     uint64 // the last request that sets it
	fired   bool   // an event has used it up since
	removal uint64 // the last request that removes it
}

const (
	// maxSizeWatches bounds the number of watches on stored sizes that no position needs.
	maxSizeWatches = 64
	// sizePause is how long a position that cannot watch the stored size waits before it reads
	// the size again.
	sizePause = time.Second
)

// listAndSize lists the leases in dir, and then reads the stored size. then gets both answers.
func (c *Core) listAndSize(p *position, dir string, watch bool, then func(now time.Duration, list, size Reply)) {
	var list Reply
	c.send(Request{Kind: List, Path: dir, Watch: watch}, func(_ time.Duration, r Reply) { list = r })
	watch = watch && c.useSizeWatch(p)
	if watch {
		w := c.sizeWatches[SizePath(p.sem.Path)]
		w.req, w.fired = c.lastReq+1, false
	}
	c.send(Request{Kind: Get, Path: SizePath(p.sem.Path), Watch: watch}, func(now time.Duration, r Reply) { then(now, list, r) })
}

// useSizeWatch makes the position a user of the watch on its stored size, and reports whether the
// position may set that watch.
func (c *Core) useSizeWatch(p *position) bool {
	w := c.sizeWatches[SizePath(p.sem.Path)]
	switch {
	case p.watchesSize:
		return true
	case w == nil && c.unusedSizeWatches >= maxSizeWatches:
		return false
	case w == nil:
		if c.sizeWatches == nil {
			c.sizeWatches = map[string]*sizeWatch{}
		}
		w = new(sizeWatch)
		c.sizeWatches[SizePath(p.sem.Path)] = w
	case w.users == 0:
		c.unusedSizeWatches--
	}
	w.users++
	p.watchesSize = true
	return true
}

// readSizeAgain schedules the next read of the stored size for a position that waits without a
// watch on it.
func (c *Core) readSizeAgain(now time.Duration, p *position) {
	if p.sem.stored() && !p.watchesSize {
		p.acquire.retry(now + sizePause)
	}
}

// quitSizeWatch records that the position needs no watch on its stored size any more. The last
// user removes the watch.
func (c *Core) quitSizeWatch(p *position) {
	if !p.watchesSize {
		return
	}
	p.watchesSize = false
	path := SizePath(p.sem.Path)
	w := c.sizeWatches[path]
	if w == nil { // it was of another session
		return
	}
	w.users--
	switch {
	case w.users > 0:
	case w.fired:
		delete(c.sizeWatches, path)
	default:
		c.unusedSizeWatches++
		c.removeSizeWatch(path, w, true)
	}
}

// sizeChanged handles an event of a path that may be that of a stored size. A request in flight may
// set the watch again.
func (c *Core) sizeChanged(path string) {
	w := c.sizeWatches[path]
	if w == nil || c.pending[w.req] != nil {
		return
	}
	if w.fired = true; w.users == 0 {
		c.sizeUnwatched(path)
	}
}

// removeSizeWatch removes the watch on a stored size, if it can. The first request on a connection
// may only find out whether the servers remove watches. It is then sent again, if again is set.
func (c *Core) removeSizeWatch(path string, w *sizeWatch, again bool) {
	if !c.cfg.OwnSession || c.keepsWatches || !c.connected() {
		return
	}
	c.removeWatch(path, func(r Reply) {
		if c.sizeWatches[path] != w || w.users > 0 || w.removal != r.ID {
			return
		}
		switch {
		case r.Code == OK || r.Code == Refused: // there was none if it is refused
			c.sizeUnwatched(path)
		case r.Code == NotApplied && again:
			c.removeSizeWatch(path, w, false)
		}
	})
	w.removal = c.lastReq
}

// removeSizeWatches removes the watches on stored sizes that no position needs, and that could
// not be removed on the last connection.
func (c *Core) removeSizeWatches() {
	for _, path := range slices.Sorted(maps.Keys(c.sizeWatches)) { // the order must not be random
		if w := c.sizeWatches[path]; w.users == 0 {
			c.removeSizeWatch(path, w, true)
		}
	}
}

// sizeUnwatched forgets the watch at this path, which the servers no longer have, unless a
// position needs it.
func (c *Core) sizeUnwatched(path string) {
	if w := c.sizeWatches[path]; w != nil && w.users == 0 {
		delete(c.sizeWatches, path)
		c.unusedSizeWatches--
	}
}

// countStored handles a listing of the leases and the size that was read after it. If an
// event came between the two answers, the watches are no longer set, and it reads again.
func (c *Core) countStored(now time.Duration, p *position, list, size Reply, watched bool) {
	again := p.query == outdated
	if !c.answers(now, p, list) {
		return
	}
	of, ok := c.storedSize(now, p, size)
	switch {
	case !ok:
	case again:
		c.count(p, watched)
	default:
		c.counts(now, p, list.Children, of, watched)
	}
}

// storedSize returns the size in the answer, if the acquire can be granted with it at some
// time. Otherwise it ends the acquire or schedules a retry.
func (c *Core) storedSize(now time.Duration, p *position, r Reply) (of int, ok bool) {
	switch r.Code {
	case OK:
		of, ok = ParseSize(r.Data)
		switch {
		case !ok:
			c.fail(now, p.acquire, fmt.Errorf("%w: %s does not contain a number; set one with Client.Resize", ErrSize, SizePath(p.sem.Path)))
		case p.sem.Permits > of:
			ok = false
			c.fail(now, p.acquire, fmt.Errorf("%w: it is %d, and the acquire needs %d permits", ErrSize, of, p.sem.Permits))
		}
	case NoNode:
		c.fail(now, p.acquire, fmt.Errorf("%w: none is set; set one with Client.Resize", ErrSize))
	case Unknown, NotApplied:
		p.acquire.retry(now + retryPause)
	case SessionOver: // the session change follows, and parks the acquire
	default:
		c.fail(now, p.acquire, r.Err)
	}
	return of, ok
}

// leasesChanged handles an event for the leases of the semaphore at path, or for its stored
// size: both can clear the acquire that counts them, or make a try at the gate fail.
func (c *Core) leasesChanged(now time.Duration, path string) {
	for _, dir := range []string{LeasesPath(path), GatePath(path)} {
		l := c.queues[dir]
		if l == nil {
			continue
		}
		for _, p := range l.concerned(Children, dir) {
			if p.membership == present && p.clearance == notCleared {
				c.recount(p)
			}
		}
	}
}

// recount counts the leases of a semaphore again.
func (c *Core) recount(p *position) {
	tries := p.role == gate && p.blocker.name != "" && p.acquire.spec.Try
	switch {
	case p.role != leases && !tries:
	case p.query == reading && p.sem.stored():
		p.query = outdated
	case p.query != idle || p.nodes[0].state != alive:
	case tries:
		c.tryGate(p, p.blocker.name)
	default:
		c.count(p, false)
	}
}

// semaphoreOf returns the path of the semaphore whose leases or stored size an event
// concerns.
func semaphoreOf(kind EventKind, path string) (string, bool) {
	if kind == Children {
		return strings.CutSuffix(path, LeasesPath(""))
	}
	return strings.CutSuffix(path, sizeNode)
}
