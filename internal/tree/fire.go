package tree

import (
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// firing is one change on its way to the connections that watch.
type firing struct {
	t     *Tree
	event wire.WatcherEvent
	acl   *aclSet
	frame []byte // made for the first who gets it, shared by all
	out   *Out
}

// newFiring begins a change. Within it each connection is told once.
func (t *Tree) newFiring(path string, typ wire.EventType, acl *aclSet, out *Out) firing {
	t.watches.changes++
	return firing{t: t, event: nodeEvent(typ, path), acl: acl, out: out}
}

// fire tells of a node's creation or new data.
func (t *Tree) fire(path string, typ wire.EventType, acl *aclSet, out *Out) {
	if t.watches.total == 0 {
		return
	}
	// Nobody watches in most changes of a busy server: they pay one comparison.
	f := t.newFiring(path, typ, acl, out)
	f.table(dataOnce, dataPersistent, dataRecursive)
}

// fireDeleted tells of a deletion: those who watch the node, and those who watch
// its children unless they were told already.
func (t *Tree) fireDeleted(path string, acl *aclSet, out *Out) {
	if t.watches.total == 0 {
		return
	}
	f := t.newFiring(path, wire.EventNodeDeleted, acl, out)
	f.table(dataOnce, dataPersistent, dataRecursive)
	f.table(childOnce, childPersistent, childRecursive)
}

// fireChildren tells those who watch the children of p, not the recursive ones:
// they have seen the child itself.
func (t *Tree) fireChildren(p *node, out *Out) {
	if t.watches.total == 0 {
		return
	}
	f := t.newFiring(p.path(), wire.EventNodeChildrenChanged, t.acls.of(p), out)
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
				f.deliver(e.conn)
			}
			left := e.bits &^ once
			w.account(path, e.bits, left)
			if e.bits = left; left == 0 {
				delete(e.conn.watched, path)
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
	for path != rootPath {
		path = path[:max(strings.LastIndexByte(path, '/'), 1)]
		for _, e := range w.byPath[path] {
			if e.bits&recurse != 0 {
				f.deliver(e.conn)
			}
		}
	}
}

// deliver tells c, if it was not told of this change yet and may read the node.
func (f *firing) deliver(c *conn) {
	if c.fired == f.t.watches.changes || c.fired == farBehind {
		return
	}
	c.fired = f.t.watches.changes
	if !f.t.mayWatch(c, f.acl) {
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

// eventZxid stands in the header of events, as before 3.9. Later servers put
// the change's there, which some clients take for what they have seen.
const eventZxid = -1

// nodeEvent is the event as it goes out.
func nodeEvent(typ wire.EventType, path string) wire.WatcherEvent {
	return wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: path}
}
