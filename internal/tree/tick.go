package tree

import (
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Tick performs what is due. It ends the sessions whose clients were not heard for
// their timeout: first those of addresses with few sessions, see session.class, and
// otherwise in the order of their deadlines. It removes empty containers and expired
// TTL nodes. Long work is done in parts, one per call: if more is left, the
// next call is due at once. Call it no earlier than [Tree.NextTick] says; an early
// call does nothing.
//
// Only Tick ends a session because its client is silent. A caller that was itself
// stopped for a while first passes on what has arrived, so that requests that came in
// time save their sessions.
func (t *Tree) Tick(now Now, out *Out) {
	t.beginCall(now)
	defer t.closeOverflowed(out)
	// Due sessions expire before the backlog continues, which may take long.
	for i := range t.expiry {
		t.expireDue(&t.expiry[i], now, out)
	}
	t.runBacklog(now, out)
	if now.Mono >= t.nextSweep && !t.readOnly && !t.exhausted() {
		// If more is left to sweep, the next call is due at once.
		if t.sweep(now, out); t.sweeping == nil {
			t.nextSweep = now.Mono + t.cfg.ContainerInterval
		}
	}
}

// expireDue ends the due sessions of a class until the call has used its steps. An entry
// whose key is before its deadline gets its deadline as its key. That accounts for all
// touches since then.
func (t *Tree) expireDue(h *expiryHeap, now Now, out *Out) {
	for s := h.first(); s != nil && s.heapTime <= now.Mono && !t.exhausted(); s = h.first() {
		if s.deadline > now.Mono {
			t.steps += 2
			s.heapTime = s.deadline
			h.fix(int(s.index))
			continue
		}
		t.expire(s, now, out)
	}
}

// expire ends a session whose timeout is over. Its connection, if any, is closed
// without a message, as in Java: the client learns it when it reconnects.
func (t *Tree) expire(s *session, now Now, out *Out) {
	c := s.conn
	t.counters.Expired++
	t.steps += removalSteps
	t.endSession(s, now, out)
	if c != nil {
		t.drop(c, out)
	}
}

// NextTick returns when Tick must be called next, on the Mono clock, and whether it
// must be called at all. The time may be earlier than necessary. Ask again after any
// other call.
func (t *Tree) NextTick() (time.Duration, bool) {
	at, ok := time.Duration(0), false
	for i := range t.expiry {
		if s := t.expiry[i].first(); s != nil && (!ok || s.heapTime < at) {
			at, ok = s.heapTime, true
		}
	}
	if (t.containers.count+t.ttls.count > 0 || t.sweeping != nil) && !t.readOnly && (!ok || t.nextSweep < at) {
		at, ok = t.nextSweep, true
	}
	if t.backlog.pending() && (!ok || t.backlog.since < at) {
		at, ok = t.backlog.since, true
	}
	return at, ok
}

// StartClocks gives every session its full timeout from now on. Call it once before
// the first request, after Restore and Replay: no client could reach the server
// before that.
func (t *Tree) StartClocks(now Now) {
	for _, s := range t.sessionList() {
		if s.ending() {
			t.enqueueEnd(s)
		}
		t.touch(s, now)
	}
	t.backlog.since = now.Mono
	t.nextSweep = now.Mono + t.cfg.ContainerInterval
}

// expiryHeap orders the sessions by the time at which they must be checked, and by ID
// for equal times. A session's key may be earlier than its deadline (see Tree.touch),
// never later.
type expiryHeap struct {
	list []*session
}

// less orders by time and then by ID, so that sessions with the same deadline end in
// the same order in every run.
func (h *expiryHeap) less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	return a.heapTime < b.heapTime || a.heapTime == b.heapTime && a.id < b.id
}

func (h *expiryHeap) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].index, h.list[j].index = int32(i), int32(j)
}

// push adds s with the key s.heapTime. A session is in the heap at most once, as its
// index shows.
func (h *expiryHeap) push(s *session) {
	s.index = int32(len(h.list)) // memory is too small for more
	h.list = append(h.list, s)
	h.fix(int(s.index))
}

// fix restores the order after the entry at i changed, in either direction.
func (h *expiryHeap) fix(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.list); c++ {
			if h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

// remove removes the entry at i. The last entry takes its place.
func (h *expiryHeap) remove(i int) {
	end := len(h.list) - 1
	h.swap(i, end)
	h.list[end].index = -1
	h.list[end] = nil
	h.list = h.list[:end]
	if i < end {
		h.fix(i)
	}
}

// first returns the earliest entry, or nil.
func (h *expiryHeap) first() *session {
	if len(h.list) == 0 {
		return nil
	}
	return h.list[0]
}

// sweep removes containers that had children and have none, or were never used for
// too long. It also removes TTL nodes without children whose data is older than their
// TTL. Each removal is a transaction (ContainerManager.checkContainers), in the order
// of creation. The rest is left for the next call: t.sweeping is then not nil.
func (t *Tree) sweep(now Now, out *Out) {
	if t.sweeping == nil {
		t.sweeping = t.containers.cursor()
	}
	for !t.exhausted() {
		n := t.sweeping.visit()
		if n == nil {
			done := t.sweeping.list == &t.ttls
			t.sweeping.close()
			if t.sweeping = nil; done {
				return
			}
			t.sweeping = t.ttls.cursor()
			continue
		}
		t.steps++
		// It may have children by now, or may have been deleted.
		if n.parent == nil || !t.isDue(n, now) {
			continue
		}
		t.commit(&txn{op: wire.OpDelete, path: n.path()}, now, out)
	}
}

// isDue reports whether a container or TTL node is to be removed. A container that
// never had a child is kept for Config.NeverUsed, because its creator is about to use
// it.
func (t *Tree) isDue(n *node, now Now) bool {
	r := n.extraOrNew()
	if r.children > 0 {
		return false
	}
	unchanged := now.Wall - r.mtime
	if kindOf(n.owner) == container {
		return r.creates > 0 || t.cfg.NeverUsed > 0 && unchanged > t.cfg.NeverUsed
	}
	return unchanged > n.owner&maxTTL
}
