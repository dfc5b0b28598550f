package tree

import (
	"slices"
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
	size, events, long := 0, 0, 0
	known := make(map[string]int, len(subs))
	above := make(map[string]int)
	for i := range subs {
		x := &subs[i]
		if x.path == "" {
			continue // of a check
		}
		n, ok := known[x.path]
		if !ok {
			n = t.audience(x.path, above)
			known[x.path] = n
		}
		if len(x.path) > longPath {
			long += n * len(x.path)
		}
		events += n * t.eventWeight(x)
		size += n * (eventCost + len(x.path))
		if size > multiFanOut*t.cfg.MaxReply || events > maxEvents || long > longPaths {
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

const (
	// longPath is the length from which on the time to copy a path counts, and
	// longPaths how many bytes of such paths the events of one call, or of one multi,
	// may have.
	longPath, longPaths = 1024, 8 << 20
	// fewLookups is how many permissions are looked up for an event at no more cost than
	// the event has. maxLookups bounds those of events that need more, in one call.
	fewLookups, maxLookups = 32, 1_000_000
)

// tell counts an event for c on its way out, and reports whether it may go: not
// beyond what the events of one call may take. A session that ends with a hundred
// thousand nodes can't be refused as a multi can. Who would hear of it is closed
// instead, and comes back to look for itself: a watch that stays and misses an
// event without a word would be worse.
func (t *Tree) tell(c *conn, size int) bool {
	if c.fired == farBehind {
		return false
	}
	if size > longPath {
		t.longPaths += size
	}
	if t.eventBytes += eventCost + size; t.eventBytes <= callFanOut*t.cfg.MaxReply && t.longPaths <= longPaths {
		return true
	}
	t.leaveBehind(c)
	return false
}

// lookUp counts n lookups of permissions for an event of c, and reports whether the call
// has time for them. If not, c is closed as in tell.
func (t *Tree) lookUp(c *conn, n int) bool {
	if n <= fewLookups {
		return true
	}
	t.steps += n / lookupsPerStep
	if t.lookups += n; t.lookups <= maxLookups {
		return true
	}
	t.leaveBehind(c)
	return false
}

// leaveBehind marks c: it gets no more events, and closeBehind closes it.
func (t *Tree) leaveBehind(c *conn) {
	c.fired = farBehind
	t.behind = append(t.behind, c)
}

// closeBehind closes, at the end of a call, the connections that tell could not
// tell of all.
func (t *Tree) closeBehind(out *Out) {
	t.eventBytes, t.longPaths, t.lookups = 0, 0, 0
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
// or of its parent's children. The node need not exist. above keeps, by path, what
// audienceOver returned for the other operations of a multi.
func (t *Tree) audience(path string, above map[string]int) int {
	w := &t.watches
	n := w.lasting(path, dataPersistent|dataRecursive)
	if path == rootPath {
		return n
	}
	parent := path[:max(strings.LastIndexByte(path, '/'), 1)]
	return n + w.lasting(parent, dataRecursive|childPersistent) + t.audienceOver(parent, above)
}

// audienceOver counts the recursive watches above path. If the nodes above path do not
// exist, each of their paths is looked up, once a multi.
func (t *Tree) audienceOver(path string, above map[string]int) int {
	w := &t.watches
	if w.recursive == 0 {
		return 0
	}
	var missing []string // from path on upwards
	n := 0
	for at := path; at != rootPath; at = at[:max(strings.LastIndexByte(at, '/'), 1)] {
		if known, ok := above[at]; ok {
			n = known
			break
		}
		if p := t.nodes.get(at); p != nil {
			n = t.audienceAbove(p)
			above[at] = n
			break
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		n += w.lasting(at[:max(strings.LastIndexByte(at, '/'), 1)], dataRecursive)
		above[at] = n
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
