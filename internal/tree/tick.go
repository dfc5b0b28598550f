package tree

import "time"

// Tick does what is due: sessions that were not heard for their timeout end, in
// the order of their deadlines, and empty containers and outlived TTL nodes are
// removed. What takes long it does in parts, one a call: with more to do the next
// call is due at once. Call it no earlier than [Tree.NextTick] says; an early call
// does nothing.
//
// Nothing but Tick ends a session for its silence. A caller that was itself
// stopped for a while hands over what has arrived meanwhile first: requests that
// came in time then save their sessions.
func (t *Tree) Tick(now Now, out *Out) {
	t.begin(now)
	defer t.closeBehind(out)
	t.workOff(now, out)
	// An entry that is too early is put where it belongs; that settles all the
	// touches since, at once.
	for s := t.expiry.first(); s != nil && s.queued <= now.Mono && !t.exhausted(); s = t.expiry.first() {
		if s.deadline > now.Mono {
			t.steps += 2
			s.queued = s.deadline
			t.expiry.fix(int(s.index))
			continue
		}
		t.expire(s, now, out)
	}
	if now.Mono >= t.nextSweep && !t.readOnly && !t.exhausted() {
		// With more to sweep the next call is due at once.
		if t.sweep(now, out); len(t.sweeping) == 0 {
			t.nextSweep = now.Mono + t.cfg.ContainerInterval
		}
	}
}

// expire ends a session whose time is over. Its connection, if there is one, is
// closed without a word, as Java does: the client learns it when it comes back.
func (t *Tree) expire(s *session, now Now, out *Out) {
	c := s.conn
	t.tallies.Expired++
	t.steps += removalSteps
	t.endSession(s, now, out)
	if c != nil {
		t.drop(c, out)
	}
}

// NextTick returns when Tick must be called next, on the Mono clock, and
// whether it must at all. It may be earlier than anything is really due. Ask
// again after any other call.
func (t *Tree) NextTick() (time.Duration, bool) {
	at, ok := time.Duration(0), false
	if s := t.expiry.first(); s != nil {
		at, ok = s.queued, true
	}
	if t.containers.live+t.ttls.live+len(t.sweeping) > 0 && !t.readOnly && (!ok || t.nextSweep < at) {
		at, ok = t.nextSweep, true
	}
	if t.backlog.left() && (!ok || t.backlog.since < at) {
		at, ok = t.backlog.since, true
	}
	return at, ok
}

// StartClocks gives every session its full timeout from now on. Call it once
// before the first request, after Restore and Replay if there is something to
// restore: while the server was gone nobody could be heard.
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
