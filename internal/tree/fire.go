package tree

import (
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// firing is one change on its way to the connections that watch.
type firing struct {
	t     *Tree
	event wire.WatcherEvent
	above *node // the node's parent, nil above the root
	acl   *aclSet
	frame []byte // made for the first who gets it, shared by all
	out   *Out
}

// newFiring begins a change. Within it each connection is told once.
func (t *Tree) newFiring(path string, typ wire.EventType, above *node, acl *aclSet, out *Out) firing {
	t.watches.changes++
	return firing{t: t, event: nodeEvent(typ, path), above: above, acl: acl, out: out}
}

// fire tells of a node's creation or new data.
func (t *Tree) fire(n *node, typ wire.EventType, acl *aclSet, out *Out) {
	if t.watches.total == 0 {
		return
	}
	// Nobody watches in most changes of a busy server: they pay one comparison.
	f := t.newFiring(n.path(), typ, n.parent, acl, out)
	f.table(dataOnce, dataPersistent, dataRecursive)
}

// fireDeleted tells of a deletion in p: those who watch the node, and those who watch
// its children unless they were told already.
func (t *Tree) fireDeleted(path string, p *node, acl *aclSet, out *Out) {
	if t.watches.total == 0 {
		return
	}
	f := t.newFiring(path, wire.EventNodeDeleted, p, acl, out)
	f.table(dataOnce, dataPersistent, dataRecursive)
	f.table(childOnce, childPersistent, childRecursive)
}

// fireChildren tells those who watch the children of p, not the recursive ones:
// they have seen the child itself.
func (t *Tree) fireChildren(p *node, out *Out) {
	if t.watches.total == 0 {
		return
	}
	f := t.newFiring(p.path(), wire.EventNodeChildrenChanged, p.parent, t.acls.of(p), out)
	f.table(childOnce, childPersistent, 0)
}

// table goes through one of ZooKeeper's two tables (WatchManager.triggerWatch):
// the path's own watches, then the recursive ones further up. One-shot watches
// are used up, also those of connections that may not hear of it. Among the
// connections the order is that in which they set their watches; Java has none.
func (f *firing) table(once, lasting, recurse watchBits) {
	w := &f.t.watches
	path := f.event.Path
	if list := w.byPath[path]; len(list) > 0 {
		// What remains is moved together in place: deliver can't touch the table.
		kept := list[:0]
		for _, e := range list {
			if e.bits&(once|lasting|recurse) != 0 {
				f.deliver(e.conn, nil)
			}
			left := e.bits &^ once
			w.account(path, e.bits, left)
			if e.bits = left; left == 0 {
				w.dropPath(path, e.conn)
				continue
			}
			kept = append(kept, e)
		}
		clear(list[len(kept):]) // or the table would keep dead connections
		w.store(path, kept)
	}
	if recurse == 0 || w.recursive == 0 {
		return
	}
	looked := 0
	var room [8]*aclSet
	above, last := room[:0], f.above // the lists of the nodes between the watch and the change
	for n := f.above; n != nil; n = n.parent {
		if looked++; len(above) == 0 || n.acl != last.acl {
			above, last = append(above, f.t.acls.of(n)), n
		}
		if n.more.hears {
			n.more.hears = f.tell(n.path(), recurse, above)
		}
	}
	f.t.steps += looked / ancestorsPerStep
}

// tell tells those with a recursive watch on the path of a node above, and reports
// whether there is any such watch.
func (f *firing) tell(path string, recurse watchBits, above []*aclSet) (any bool) {
	f.t.steps += 1 + len(path)/textPerStep + len(f.t.watches.byPath[path])/lookedPerStep
	for _, e := range f.t.watches.byPath[path] {
		any = any || e.bits&recursive != 0
		if e.bits&recurse != 0 {
			f.deliver(e.conn, above)
		}
	}
	return any
}

// deliver tells c, if it was not told of this change yet and may read the node. Where
// the watch is on a node further up, the path has names in it which c must be allowed
// to list: above are the lists of the nodes whose children they are. A watch further
// down has fewer of them and was asked first.
func (f *firing) deliver(c *conn, above []*aclSet) {
	if c.fired == f.t.watches.changes || c.fired == farBehind {
		return
	}
	c.fired = f.t.watches.changes
	f.t.steps += eventSteps + len(above)
	if !f.t.mayWatch(c, f.acl) || !f.t.mayLearn(c, above) {
		return
	}
	if f.frame == nil {
		f.frame = wire.AppendEvent(nil, eventZxid, &f.event)
	}
	if f.t.tell(c, len(f.event.Path)) {
		f.out.frame(c, f.frame)
	}
}

// mayWatch reports whether c may hear of a node with the list acl, nil for a
// node that is gone. ZooKeeper up to 3.8.3 told everybody, paths included; Debian's
// 3.8.0 has the mend.
func (t *Tree) mayWatch(c *conn, acl *aclSet) bool {
	return acl == nil || t.may(c, acl, wire.PermRead)
}

// mayLearn reports whether c may list the children of all nodes with these lists.
// ZooKeeper tells a recursive watch of nodes that getChildren would not list.
func (t *Tree) mayLearn(c *conn, lists []*aclSet) bool {
	if t.cfg.Compat38 {
		return true
	}
	return t.lookUp(c, len(lists)*len(c.ids)) && !slices.ContainsFunc(lists, func(s *aclSet) bool { return !t.may(c, s, wire.PermRead) })
}

// eventZxid stands in the header of events, as before 3.9. Later servers put
// the change's there, which some clients take for what they have seen.
const eventZxid = -1

// nodeEvent is the event as it goes out.
func nodeEvent(typ wire.EventType, path string) wire.WatcherEvent {
	return wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: path}
}
