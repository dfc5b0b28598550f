package tree

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// watchRestore is a setWatches request that takes more than one call.
type watchRestore struct {
	xid   int32
	lists [][]string // the remaining paths, by kind
	kind  int        // index of the next list
	seen  int64      // the last transaction that the client saw
}

// setWatches restores the watches of a client that has reconnected. It reports at
// once what changed since q.RelativeZxid, and sets the other watches again
// (DataTree.setWatches).
func (t *Tree) setWatches(c *conn, h wire.RequestHeader, r *jute.Reader, out *Out) {
	var q wire.SetWatches2
	if h.Op == wire.OpSetWatches2 {
		q.Decode(r)
	} else {
		var old wire.SetWatches
		old.Decode(r)
		q = wire.SetWatches2{
			RelativeZxid: old.RelativeZxid, DataWatches: old.DataWatches,
			ExistWatches: old.ExistWatches, ChildWatches: old.ChildWatches,
			PersistentWatches: []string{}, PersistentRecursiveWatches: []string{},
		}
	}
	if r.Err() != nil {
		t.reply(c, h.Xid, wire.ErrMarshalling, nil, out)
		return
	}
	t.restoreWatches(c, &watchRestore{xid: h.Xid, seen: q.RelativeZxid,
		lists: [][]string{q.DataWatches, q.ExistWatches, q.ChildWatches, q.PersistentWatches, q.PersistentRecursiveWatches}}, out)
}

// Continue continues the last request of a connection. Like Request, it reports
// whether more is left. Each watch is restored relative to the current state, so
// changes between the calls are not lost.
func (t *Tree) Continue(id ConnID, now Now, out *Out) (more bool) {
	c, ok := t.conns[id]
	if !ok || t.watchRestores[c] == nil {
		return false
	}
	t.beginCall(now)
	defer t.closeOverflowed(out)
	t.restoreWatches(c, t.watchRestores[c], out)
	return t.watchRestores[c] != nil
}

// restoreWatches restores as many watches as one call has time for. It answers after
// the last of them.
func (t *Tree) restoreWatches(c *conn, q *watchRestore, out *Out) {
	done, err := t.restorePart(c, q, out)
	switch {
	case t.takeWatchRefusal():
		t.drop(c, out)
	case done:
		delete(t.watchRestores, c)
		t.reply(c, q.xid, err, nil, out)
	default:
		t.watchRestores[c] = q
	}
}

// restorePart reports whether the request is complete, and its result.
func (t *Tree) restorePart(c *conn, q *watchRestore, out *Out) (done bool, err wire.ErrCode) {
	for ; q.kind < len(q.lists); q.kind++ {
		list := q.lists[q.kind]
		if list == nil {
			// As in Java, a null list ends the request with an error, after the lists
			// before it are restored.
			return true, wire.ErrMarshalling
		}
		for i, path := range list {
			if t.exhausted() {
				q.lists[q.kind] = list[i:]
				return false, wire.ErrOK
			}
			t.steps += watchSteps
			t.restoreWatch(c, q.kind, path, q.seen, out)
		}
	}
	return true, wire.ErrOK
}

// restoreWatch restores one watch. The kind is the index of its list. A client does
// not know which watches fired while it was disconnected: it has not been notified of
// changes after the last transaction that it saw.
func (t *Tree) restoreWatch(c *conn, kind int, path string, seen int64, out *Out) {
	n := t.lookup(path)
	switch kind {
	case 0:
		t.restoreOneShot(c, path, n, n == nil, n != nil && n.extraOrNew().mzxid > seen, wire.EventNodeDataChanged, dataOnce, out)
	case 1:
		t.restoreOneShot(c, path, n, false, n != nil, wire.EventNodeCreated, dataOnce, out)
	case 2:
		t.restoreOneShot(c, path, n, n == nil, n != nil && n.extraOrNew().pzxid > seen, wire.EventNodeChildrenChanged, childOnce, out)
	// Persistent watches missed events too, but the server does not know which. A client
	// with such watches must read the state itself.
	case 3:
		t.addWatch(path, c, dataPersistent|childPersistent)
	case 4:
		t.addWatch(path, c, dataRecursive)
	}
}

// restoreOneShot reports the deletion of the node or the missed event to c, or sets
// the watch again. If c may not see the event, the watch is set again: otherwise
// checkWatches would tell c whether a node that it may not read has changed since any
// transaction. The event names no transaction, because the state does not tell which
// one the client missed.
func (t *Tree) restoreOneShot(c *conn, path string, n *node, deleted, missed bool, typ wire.EventType, bits watchBits, out *Out) {
	var acl *aclSet
	if n != nil {
		acl = t.acls.of(n)
	}
	if !deleted && !missed || !t.maySee(c, acl) {
		t.addWatch(path, c, bits)
		return
	}
	if deleted {
		typ = wire.EventNodeDeleted
	}
	t.steps += eventSteps + len(path)/textPerStep
	e := nodeEvent(typ, path)
	out.frame(c, wire.AppendEvent(nil, noZxid, &e))
}
