package tree

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// setWatches restores the watches of a client that has a new connection: it is
// told at once of what changed since q.RelativeZxid, and the rest is armed again
// (DataTree.setWatches).
func (t *Tree) setWatches(c *conn, op wire.OpCode, r *jute.Reader, out *Out) (wire.Record, wire.ErrCode) {
	var q wire.SetWatches2
	if op == wire.OpSetWatches2 {
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
		return nil, wire.ErrMarshalling
	}
	// A list that is null ends it with an error, as in Java: those before it are
	// done by then.
	lists := [][]string{q.DataWatches, q.ExistWatches, q.ChildWatches, q.PersistentWatches, q.PersistentRecursiveWatches}
	for kind, list := range lists {
		if list == nil {
			return nil, wire.ErrMarshalling
		}
		for _, path := range list {
			t.restoreWatch(c, kind, path, q.RelativeZxid, out)
		}
	}
	return nil, wire.ErrOK
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
		e := nodeEvent(typ, path)
		out.frame(c, wire.AppendEvent(nil, eventZxid, &e))
	}
}
