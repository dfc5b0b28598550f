package tree

import (
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// firing is the delivery of one change to the watching connections.
type firing struct {
	t     *Tree
	event wire.WatcherEvent
	above *node // the node's parent; nil for the root
	acl   *aclSet
	frame []byte // encoded for the first recipient, shared by all
	out   *Out
}

// newFiring begins the delivery of a change. Each connection is notified once.
func (t *Tree) newFiring(path string, typ wire.EventType, above *node, acl *aclSet, out *Out) firing {
	t.watches.changes++
	return firing{t: t, event: nodeEvent(typ, path), above: above, acl: acl, out: out}
}

// fire reports the creation of a node or new data.
func (t *Tree) fire(n *node, typ wire.EventType, acl *aclSet, out *Out) {
	if t.watches.total == 0 {
		return
	}
	// Most changes of a busy server have no watchers and cost one comparison.
	f := t.newFiring(n.path(), typ, n.parent, acl, out)
	f.fireTable(dataOnce, dataPersistent, dataRecursive)
}

// fireDeleted reports a deletion in p to the connections that watch the node or its children. In
// Java, the watches on its children come after the recursive ones on ancestors.
func (t *Tree) fireDeleted(path string, p *node, acl *aclSet, out *Out) {
	if t.watches.total == 0 {
		return
	}
	f := t.newFiring(path, wire.EventNodeDeleted, p, acl, out)
	f.fireTable(dataOnce|childOnce, dataPersistent|childPersistent, dataRecursive)
}

// fireChildren reports a change of the children of p. Recursive watches are excluded,
// because they have seen the child itself.
func (t *Tree) fireChildren(p *node, out *Out) {
	if t.watches.total == 0 {
		return
	}
	f := t.newFiring(p.path(), wire.EventNodeChildrenChanged, p.parent, t.acls.of(p), out)
	f.fireTable(childOnce, childPersistent, 0)
}

// fireTable notifies watches of one or both of ZooKeeper's two tables
// (WatchManager.triggerWatch): those on the path itself, then the recursive ones on
// ancestors. One-shot watches are removed, or hidden if their connection may not see
// the event: in Java, that connection can find out that they are gone. Connections are
// notified in the order in which they set their watches; Java has no order.
func (f *firing) fireTable(once, lasting, recurse watchBits) {
	f.limitWork(once|lasting|recurse, recurse)
	w := &f.t.watches
	path := f.event.Path
	if list := w.byPath[path]; len(list) > 0 {
		f.t.steps += len(list) / lookedPerStep
		// The remaining entries are compacted in place, which is safe because deliver
		// cannot change the table.
		kept := list[:0]
		for _, e := range list {
			left := e.bits &^ once
			if e.bits&(once|lasting|recurse) != 0 && !f.deliver(e.conn, nil) {
				left |= (e.bits & once).hidden()
			}
			w.account(path, e.conn, e.bits, left)
			if e.bits = left; left == 0 {
				w.dropPath(path, e.conn)
				continue
			}
			kept = append(kept, e)
		}
		clear(list[len(kept):]) // otherwise the table would keep closed connections
		w.store(path, kept)
	}
	if recurse != 0 && w.recursive > 0 {
		f.t.recursiveWatches(f.above, func(c *conn, above []*aclSet) { f.deliver(c, above) })
	}
}

// recursiveWatches calls use for each recursive watch on n and its ancestors, closest first, with
// the lists of the nodes from n to the watch. It clears the marks of nodes whose watches were
// removed. It returns how many watches it inspected.
func (t *Tree) recursiveWatches(n *node, use func(c *conn, lists []*aclSet)) (inspected int) {
	var room [8]*aclSet
	lists, last := room[:0], n
	for ; n != nil; n = n.parent {
		if len(lists) == 0 || n.acl != last.acl {
			lists, last = append(lists, t.acls.of(n)), n
		}
		if n.extra == nil || !n.extra.recursiveWatch {
			continue
		}
		path := n.path()
		watches, marked := t.watches.byPath[path], false
		t.steps += 1 + len(path)/textPerStep + len(watches)/lookedPerStep
		inspected += len(watches)
		for _, e := range watches {
			if e.bits&dataRecursive != 0 {
				marked = true
				use(e.conn, lists)
			}
		}
		n.extra.recursiveWatch = marked
	}
	return inspected
}

// markNotified marks c as notified of the present change, and reports whether it was not yet. It
// does not mark a connection that closes.
func (w *watchTable) markNotified(c *conn) bool {
	if c.lastChange == w.changes || c.lastChange == overflow {
		return false
	}
	c.lastChange = w.changes
	return true
}

// deliver notifies c if it was not notified of this change yet and may read the node.
// If the watch is on an ancestor, the path contains names that c must be permitted to
// list: above has the lists of the nodes whose children they are. Watches closer to
// the node are notified first and have fewer such names. deliver reports whether c may
// know of the change. It does not check that for a connection that closes.
func (f *firing) deliver(c *conn, above []*aclSet) (seen bool) {
	if !f.t.watches.markNotified(c) {
		return true
	}
	f.t.steps += eventSteps + len(above) + len(f.event.Path)/textPerStep
	// In this order, see eventCount.notify: it counts the check of f.acl only for clients that may
	// list the children of the nodes above.
	if refused, _ := f.t.refusesList(c, above); refused || !f.t.maySee(c, f.acl) {
		return false
	}
	if f.frame == nil {
		f.frame = wire.AppendEvent(nil, f.t.zxid, &f.event)
	}
	f.t.longPaths += copiedBytes(f.event.Path)
	f.out.frame(c, f.frame)
	return true
}

// maySee reports whether c may get an event of a node with the list acl, which is nil
// for a missing node.
func (t *Tree) maySee(c *conn, acl *aclSet) bool {
	return acl == nil || t.may(c, acl, wire.PermRead)
}

// refusesList reports whether one of these lists does not let c list the children of its node, and
// how many it checked. ZooKeeper reports nodes to recursive watches that getChildren would not list.
// The nodes that are the closest to the watch are checked first: a client that one of them refuses
// costs nothing for the nodes below, which may have many different lists.
func (t *Tree) refusesList(c *conn, lists []*aclSet) (refused bool, checked int) {
	for i, s := range slices.Backward(lists) {
		if !t.may(c, s, wire.PermRead) {
			return true, len(lists) - i
		}
	}
	return false, len(lists)
}

// noZxid is the zxid in the header of an event that names no transaction.
const noZxid = -1

// nodeEvent returns the event to send.
func nodeEvent(typ wire.EventType, path string) wire.WatcherEvent {
	return wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: path}
}
