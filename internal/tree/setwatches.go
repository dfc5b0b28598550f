package tree

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// restoring is a request to restore watches that takes more than one call.
type restoring struct {
	xid   int32
	lists [][]string // what is left of them, by kind
	kind  int        // of the list that is next
	seen  int64      // the last transaction that the client saw
}

// setWatches restores the watches of a client that has a new connection: it is
// told at once of what changed since q.RelativeZxid, and the rest is armed again
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
	t.restoreWatches(c, &restoring{xid: h.Xid, seen: q.RelativeZxid,
		lists: [][]string{q.DataWatches, q.ExistWatches, q.ChildWatches, q.PersistentWatches, q.PersistentRecursiveWatches}}, out)
}

// Continue goes on with the last request of a connection, and reports whether there
// is still more of it: as Request. Each watch is restored by the state of that moment,
// so the changes in between are no loss.
func (t *Tree) Continue(id ConnID, now Now, out *Out) (more bool) {
	c, ok := t.conns[id]
	if !ok || t.restoring[c] == nil {
		return false
	}
	t.begin(now)
	defer t.closeBehind(out)
	t.restoreWatches(c, t.restoring[c], out)
	return t.restoring[c] != nil
}

// restoreWatches restores as many watches as one call has time for, and answers with
// the last of them.
func (t *Tree) restoreWatches(c *conn, q *restoring, out *Out) {
	done, err := t.restorePart(c, q, out)
	switch {
	case t.takeRefusal():
		t.drop(c, out)
	case done:
		delete(t.restoring, c)
		t.reply(c, q.xid, err, nil, out)
	default:
		t.restoring[c] = q
	}
}

// restorePart reports whether it came to the end of the request, and with which
// answer.
func (t *Tree) restorePart(c *conn, q *restoring, out *Out) (done bool, err wire.ErrCode) {
	for ; q.kind < len(q.lists); q.kind++ {
		list := q.lists[q.kind]
		if list == nil {
			// A list that is null ends it with an error, as in Java: those before it
			// are done by then.
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

// restoreWatch restores one watch of the kind that its list's place says. A client
// does not know which watches fired while it was away: what changed after the
// last transaction it saw, it can't have been told of.
func (t *Tree) restoreWatch(c *conn, kind int, path string, seen int64, out *Out) {
	n := t.lookup(path)
	switch kind {
	case 0:
		t.rearm(c, path, n, n == nil, n != nil && n.rare().mzxid > seen, wire.EventNodeDataChanged, dataOnce, out)
	case 1:
		t.rearm(c, path, n, false, n != nil, wire.EventNodeCreated, dataOnce, out)
	case 2:
		t.rearm(c, path, n, n == nil, n != nil && n.rare().pzxid > seen, wire.EventNodeChildrenChanged, childOnce, out)
	// Lasting watches missed events as well, but nothing tells which: a client
	// that has such watches must look for itself.
	case 3:
		t.addWatch(path, c, dataPersistent|childPersistent)
	case 4:
		t.addWatch(path, c, t.recursiveBits())
	}
}

// rearm tells c that the node is deleted, or of the event it missed, or sets the
// watch again. An event that c may not hear is kept back, and the watch is used
// up all the same, as it would have been had c stayed connected.
func (t *Tree) rearm(c *conn, path string, n *node, deleted, missed bool, typ wire.EventType, bits watchBits, out *Out) {
	if !deleted && !missed {
		t.addWatch(path, c, bits)
		return
	}
	var acl *aclSet
	if n != nil {
		acl = t.acls.of(n)
	}
	if deleted {
		typ = wire.EventNodeDeleted
	}
	// Debian's 3.8.0 mended the events of changes, not these.
	if t.cfg.Compat38 || t.mayWatch(c, acl) {
		t.steps += eventSteps + len(path)/textPerStep
		e := nodeEvent(typ, path)
		out.frame(c, wire.AppendEvent(nil, eventZxid, &e))
	}
}
