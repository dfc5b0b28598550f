package tree

import (
	"math/bits"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// backlog is work that exceeds one call. One request may end what many requests
// created: a session with a million nodes, a connection with a million watches. Done
// at once, this would delay all other clients for seconds. Tick does a part of it at
// a time.
type backlog struct {
	// endingSessions[n] lists the sessions whose node count has n bits, in the order in which
	// their ends began. Sessions with few nodes end first, because another client may wait for
	// a lock of theirs.
	endingSessions [33][]sessionEnd
	ending         int           // number of these sessions
	ends           int           // number of all ends that began
	closedConns    []*conn       // closed connections with watches left
	turn           backlogTurn   // what the next part begins with
	since          time.Duration // when the last part was done, or the backlog began
}

// sessionEnd is the end of a session. Its number is larger than that of each end that began
// before.
type sessionEnd struct {
	session *session
	number  int
}

// backlogTurn is the work that a part begins with. They take turns, so that none waits for as
// long as clients cause new work of another kind.
type backlogTurn uint8

const (
	shortEnds backlogTurn = iota
	oldestEnd
	closedWatches
	backlogTurns // their number
)

// stepTime is about how long a step takes.
const stepTime = 200 * time.Nanosecond

// partSteps is how many steps one call may take before it leaves the rest to the next
// one. A part takes about 10 ms.
const partSteps = 50_000

// partBytes is how many bytes of records, and of long paths in events, end a part. The
// last record of a part can exceed it, by up to twice the length of a request. All other
// clients wait until the records are on disk.
const partBytes = 512 << 10

// disconnectSteps is how many steps Disconnect may take.
const disconnectSteps = 1000

// The steps of each kind of work.
const (
	removalSteps = 10 // a node that is removed
	eventSteps   = 5  // an event for one connection
	watchSteps   = 8  // a watch that is set or removed
	// textPerStep bytes of a path, ancestorsPerStep ancestors of a changed node, and
	// lookedPerStep entries of a list count as one step. The first fewAncestors are free.
	textPerStep, ancestorsPerStep, fewAncestors, lookedPerStep = 512, 4, 20, 4
	// namePerStep bytes of a certificate's name that is parsed count as one step.
	namePerStep = 4
	// entrySteps is an entry of a request's access control list.
	entrySteps = 2
	// lookupsPerStep permission lookups count as one step.
	lookupsPerStep = 6
	// quotaSteps is a quota that is read, or whose usage is stored.
	quotaSteps = 20
)

// beginCall resets the counts of steps and bytes at the start of a call.
func (t *Tree) beginCall(now Now) {
	t.steps, t.recordBytes, t.longPaths, t.lookups = 0, 0, 0, 0
	if !t.backlog.pending() {
		t.backlog.since = now.Mono
	}
}

// Work estimates how long the last call computed, without the time to copy bytes. It does
// not depend on what else the processor did meanwhile.
func (t *Tree) Work() time.Duration { return time.Duration(t.steps) * stepTime }

// exhausted reports whether the call has used its steps or its bytes.
func (t *Tree) exhausted() bool {
	return t.steps >= partSteps || t.recordBytes+t.longPaths >= partBytes
}

// walkSteps returns the steps of the visits to the ancestors of a node that changes: to count
// the change there, to find a quota, and to find recursive watches. In a multi, the last two
// are visited when the change is checked and when it is applied.
func (t *Tree) walkSteps(path string) int {
	walks := 1
	if len(t.quotas) > 0 {
		walks += 2
	}
	if t.watches.recursive > 0 {
		walks += 2
	}
	return walks * max(0, strings.Count(path, "/")-fewAncestors) / ancestorsPerStep
}

// runBacklog does a part of the backlog.
func (t *Tree) runBacklog(now Now, out *Out) {
	b := &t.backlog
	switch b.turn {
	case oldestEnd:
		t.continueEnds(b.oldest(), now, out)
	case closedWatches:
		t.removeClosedWatches()
	}
	for i := range b.endingSessions {
		t.continueEnds(&b.endingSessions[i], now, out)
	}
	t.removeClosedWatches()
	b.turn = (b.turn + 1) % backlogTurns
	b.since = now.Mono
}

// oldest returns the list that begins with the end that began first.
func (b *backlog) oldest() *[]sessionEnd {
	oldest := &b.endingSessions[0]
	for i := range b.endingSessions {
		if list := &b.endingSessions[i]; len(*list) > 0 && (len(*oldest) == 0 || (*list)[0].number < (*oldest)[0].number) {
			oldest = list
		}
	}
	return oldest
}

// continueEnds continues the ends of a list in its order until the call has used its steps.
func (t *Tree) continueEnds(list *[]sessionEnd, now Now, out *Out) {
	for len(*list) > 0 && !t.exhausted() {
		if t.continueEnd((*list)[0].session, now, out) {
			(*list)[0].session, *list = nil, (*list)[1:]
			t.backlog.ending--
		}
	}
}

// removeClosedWatches removes the watches of closed connections until the call has used its
// steps.
func (t *Tree) removeClosedWatches() {
	b := &t.backlog
	for len(b.closedConns) > 0 && !t.exhausted() {
		if c := b.closedConns[0]; t.removeWatchesOf(c) {
			b.closedConns[0], b.closedConns = nil, b.closedConns[1:]
		}
	}
}

// pending reports whether work is left.
func (b *backlog) pending() bool { return len(b.closedConns)+b.ending > 0 }

// removeWatchesOf removes watches of a closed connection, and reports whether it
// removed all of them.
func (t *Tree) removeWatchesOf(c *conn) bool {
	for path := range c.watched.set().all() {
		if t.exhausted() {
			return false
		}
		t.steps += watchSteps + len(path)/textPerStep + len(t.watches.byPath[path])/lookedPerStep
		t.watches.set(path, c, 0)
	}
	return true
}

// fewNodes is how many nodes are removed in one transaction even if that takes two parts.
const fewNodes = 16

// endsInOneTxn reports whether the rest of a session is small enough for one
// transaction.
func (t *Tree) endsInOneTxn(s *session) bool {
	list, most := s.nodes(), partSteps
	few := list.count <= fewNodes
	if few {
		most = 2*partSteps - t.steps
	}
	steps := list.count * removalSteps
	for n := range list.all() {
		if steps > most {
			return false
		}
		t.steps++ // for this estimate, which may be needed for many sessions
		steps += t.walkSteps(n.path()) + t.endEventSteps(n, !few)
	}
	return steps <= most
}

// endEventSteps estimates the steps of the events of a node's removal. The estimate is
// conservative: a connection counts once for each of its recursive watches on ancestors.
// Without texts, only the time to copy long paths counts.
func (t *Tree) endEventSteps(n *node, texts bool) (steps int) {
	if t.watches.total == 0 {
		return 0
	}
	path, lists := n.path(), t.acls.of(n).weight() // the lists are counted by weight
	each := eventSteps + copiedBytes(path)/copiedPerWork/lookupsPerStep
	if texts {
		each += len(path) / textPerStep
		if len(path) > longPath {
			each += len(path) / (partBytes / partSteps)
		}
	}
	count := func(path string, bits watchBits, lists int) {
		list := t.watches.byPath[path]
		search := 1 + len(path)/textPerStep + len(list)/lookedPerStep
		t.steps += search
		steps += search
		for _, e := range list {
			if e.bits&bits != 0 {
				steps += each + lists*len(e.conn.ids)/lookupsPerStep
			}
		}
	}
	count(path, dataMask|childMask, lists)
	count(n.parent.path(), childMask, t.acls.of(n.parent).weight())
	if t.watches.recursive == 0 {
		return steps
	}
	t.steps += t.walkSteps(path)
	for p, last := n.parent, n; p != nil; p = p.parent {
		if last == n || p.acl != last.acl {
			lists, last = lists+t.acls.of(p).weight(), p
		}
		if p.extra.recursiveWatch {
			count(p.path(), dataRecursive, lists)
		}
	}
	return steps
}

// startEnd makes the end of a session with many nodes certain: no client can resume
// it, and its end continues after a restart. Its nodes are removed later, in parts.
func (t *Tree) startEnd(s *session, now Now, out *Out) {
	t.commit(&txn{op: opEndSession, session: s.id}, now, out)
	t.enqueueEnd(s)
}

// enqueueEnd adds the end of a session to the backlog.
func (t *Tree) enqueueEnd(s *session) {
	s.ensureOwned().remaining = s.owned.cursor()
	b := &t.backlog
	list := &b.endingSessions[bits.Len32(uint32(s.nodes().count))]
	*list = append(*list, sessionEnd{s, b.ends})
	b.ending++
	b.ends++
}

// continueEnd deletes nodes of an ending session, each in its own transaction, and
// then the session. It reports whether that is complete.
func (t *Tree) continueEnd(s *session, now Now, out *Out) bool {
	for s.nodes().count > 0 {
		if t.exhausted() {
			return false
		}
		n := s.owned.remaining.visit()
		t.steps++
		if n.parent != nil {
			t.commit(&txn{op: wire.OpDelete, path: n.path()}, now, out)
		}
	}
	t.commit(&txn{op: wire.OpCloseSession, session: s.id}, now, out)
	if c := s.ensureOwned().closer; c != nil && t.conns[c.id] == c {
		t.reply(c, s.owned.closeXid, wire.ErrOK, nil, out)
		t.drop(c, out)
	}
	return true
}
