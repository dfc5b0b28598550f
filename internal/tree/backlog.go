package tree

import (
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// What a client made in many requests may end in one: a session with a million
// nodes, a connection with a million watches. Done at once, that would hold up every
// other client for seconds. A backlog is what is left of it; Tick does a part at a
// time.
type backlog struct {
	ending  []*session    // in the order in which their ends began
	leaving []*conn       // are gone, and have watches left
	since   time.Duration // when the last part of it was done, or it came
}

// partSteps is how many steps one call may take before it leaves the rest to the
// next. A step is about 200 ns: a part takes some 10 ms.
const partSteps = 50_000

// What counts how many steps.
const (
	removalSteps = 10 // a node that ends
	eventSteps   = 5  // an event for one connection
	watchSteps   = 8  // a watch that is set or removed
	// textPerStep is how many bytes of a path, ancestorsPerStep how many nodes above
	// a change, and lookedPerStep how many entries of a list are one step.
	textPerStep, ancestorsPerStep, lookedPerStep = 512, 16, 4
	// lookupsPerStep is how many lookups of permissions are one step.
	lookupsPerStep = 6
)

// begin begins a call.
func (t *Tree) begin(now Now) {
	t.steps = 0
	if !t.backlog.left() {
		t.backlog.since = now.Mono
	}
}

// exhausted reports whether the call has taken its share of steps.
func (t *Tree) exhausted() bool { return t.steps >= partSteps }

// workOff does a part of the backlog.
func (t *Tree) workOff(now Now, out *Out) {
	b := &t.backlog
	for len(b.leaving) > 0 && !t.exhausted() {
		if c := b.leaving[0]; t.unwatch(c) {
			b.leaving[0], b.leaving = nil, b.leaving[1:]
		}
	}
	for len(b.ending) > 0 && !t.exhausted() {
		if s := b.ending[0]; t.endPart(s, now, out) {
			b.ending[0], b.ending = nil, b.ending[1:]
		}
	}
	b.since = now.Mono
}

// left reports whether there is more of the backlog.
func (b *backlog) left() bool { return len(b.leaving)+len(b.ending) > 0 }

// unwatch removes watches of a connection that is gone, and reports whether it was
// all of them.
func (t *Tree) unwatch(c *conn) bool {
	for path := range c.watched {
		if t.exhausted() {
			return false
		}
		t.steps += watchSteps + len(path)/textPerStep + len(t.watches.byPath[path])/lookedPerStep
		t.watches.set(path, c, 0)
	}
	return true
}

// fewNodes is how many nodes end in one transaction, whatever the events.
const fewNodes = 16

// endsAtOnce reports whether the rest of a session is little enough for one
// transaction. If in doubt it is not: the events are counted as if every recursive
// watch heard of every node.
func (t *Tree) endsAtOnce(s *session) bool {
	list := s.nodes()
	if list.live <= fewNodes {
		return true
	}
	steps := list.live * (removalSteps + eventSteps*t.watches.recursive)
	if steps > partSteps {
		return false
	}
	for n := range list.all() {
		steps += n.pathLen() / ancestorsPerStep
	}
	return steps <= partSteps
}

// beginEnd makes the end of a session with many nodes certain: no client can resume
// it, and after a restart its end goes on. The nodes go later, a part at a time.
func (t *Tree) beginEnd(s *session, now Now, out *Out) {
	t.commit(&txn{op: opEndSession, session: s.id}, now, out)
	t.enqueueEnd(s)
}

// enqueueEnd leaves the end of a session to the backlog.
func (t *Tree) enqueueEnd(s *session) {
	s.own().remaining = s.own().copy()
	t.backlog.ending = append(t.backlog.ending, s)
}

// endPart deletes nodes of a session that ends, each in a transaction of its own,
// and the session with the last of them. It reports whether that is done.
func (t *Tree) endPart(s *session, now Now, out *Out) bool {
	for s.nodes().live > fewNodes {
		if t.exhausted() {
			return false
		}
		n := s.owned.remaining[0]
		s.owned.remaining[0], s.owned.remaining = nil, s.owned.remaining[1:]
		t.steps++
		if n.parent != nil {
			t.commit(&txn{op: wire.OpDelete, path: n.path()}, now, out)
		}
	}
	t.commit(&txn{op: wire.OpCloseSession, session: s.id}, now, out)
	if c := s.own().closer; c != nil && t.conns[c.id] == c {
		t.reply(c, s.owned.closeXid, wire.ErrOK, nil, out)
		t.drop(c, out)
	}
	return true
}
