package tree

import (
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// multiFanOut is how many times Config.MaxReply the events of one multi may take, and
// callFanOut those of one call, whatever it is. maxEvents is how many events the
// changes of one multi may make, whatever they take.
const (
	multiFanOut, callFanOut = 2, 4
	maxEvents               = 50_000
)

// eventCost is what an event takes besides its path until it is written.
const eventCost = 100

// roomForEvents is whether the events of a multi stay within bounds. One request
// may change a node forty thousand times, and as many clients may watch it that
// the events of it fill the memory. Watches that are used up are not counted:
// there is an end to them. With an error comes the operation to blame.
func (t *Tree) roomForEvents(subs []txn) (int, wire.ErrCode) {
	if t.watches.total == 0 {
		return 0, wire.ErrOK
	}
	size, events := 0, 0
	known := make(map[string]int, len(subs))
	for i := range subs {
		x := &subs[i]
		if x.path == "" {
			continue // of a check
		}
		n, ok := known[x.path]
		if !ok {
			n = t.audience(x.path)
			known[x.path] = n
		}
		events += n * t.eventWeight(x)
		if size += n * (eventCost + len(x.path)); size > multiFanOut*t.cfg.MaxReply || events > maxEvents {
			t.tallies.RefusedReplies++
			return i, wire.ErrQuotaExceeded
		}
	}
	return 0, wire.ErrOK
}

// eventWeight is how many events an event of x counts for. Whether a connection may
// hear of it is looked up in the list of the node, which takes longer if that is long,
// and for a recursive watch in those of the nodes above.
func (t *Tree) eventWeight(x *txn) int {
	const usualDepth = 16
	list, weight := x.acl, 1
	if n := t.nodes.get(x.path); n != nil {
		list = t.acls.of(n).list
	}
	if len(list) > shortACL {
		weight = 5
	}
	if t.watches.recursive > 0 && len(x.path) > usualDepth {
		weight += strings.Count(x.path, "/") / usualDepth
	}
	return weight
}

// tell counts an event for c on its way out, and reports whether it may go: not
// beyond what the events of one call may take. A session that ends with a hundred
// thousand nodes can't be refused as a multi can. Who would hear of it is closed
// instead, and comes back to look for itself: a watch that stays and misses an
// event without a word would be worse.
func (t *Tree) tell(c *conn, size int) bool {
	if c.fired == farBehind {
		return false
	}
	if t.eventBytes += eventCost + size; t.eventBytes <= callFanOut*t.cfg.MaxReply {
		return true
	}
	c.fired = farBehind
	t.behind = append(t.behind, c)
	return false
}

// closeBehind closes, at the end of a call, the connections that tell could not
// tell of all.
func (t *Tree) closeBehind(out *Out) {
	t.eventBytes = 0
	for i, c := range t.behind {
		t.behind[i] = nil
		if t.conns[c.id] == c {
			t.tallies.RefusedReplies++
			t.drop(c, out)
		}
	}
	t.behind = t.behind[:0]
}

// audience is about how many lasting watches hear of a change of the node at path
// or of its parent's children. The node need not exist.
func (t *Tree) audience(path string) int {
	w := &t.watches
	n := w.lasting(path, dataPersistent|dataRecursive)
	bits := dataRecursive | childPersistent
	for at := path; at != rootPath; bits = dataRecursive {
		at = at[:max(strings.LastIndexByte(at, '/'), 1)]
		n += w.lasting(at, bits)
		if w.recursive == 0 {
			break
		}
		if p := t.nodes.get(at); p != nil {
			n += t.audienceAbove(p)
			break
		}
	}
	return n
}

// audienceAbove counts the recursive watches above a node.
func (t *Tree) audienceAbove(n *node) (count int) {
	looked := 0
	for p := n.parent; p != nil; p = p.parent {
		if looked++; p.more.hears {
			count += t.watches.lasting(p.path(), dataRecursive)
		}
	}
	t.steps += looked / ancestorsPerStep
	return count
}

// lasting counts the connections that have one of bits on path.
func (w *watchTable) lasting(path string, bits watchBits) int {
	n := 0
	for _, e := range w.byPath[path] {
		if e.bits&bits != 0 {
			n++
		}
	}
	return n
}
