package tree

import (
	"bytes"
	"math"

	"github.com/zklock/zklock/internal/wire"
)

// opSessionTimeout is the transaction by which a session's timeout changes. It
// is none of ZooKeeper's.
const opSessionTimeout wire.OpCode = -12

// opEndSession is the transaction by which a session with many nodes begins to end.
// It is none of ZooKeeper's.
const opEndSession wire.OpCode = -14

// keepRecord is the largest room for a record that is kept for the next one.
const keepRecord = 64 << 10

// txn is what a write changes, decided already: a sequential name has its
// number, a version is the new one, an access control list the one to store.
// Which fields mean something depends on op.
type txn struct {
	op      wire.OpCode
	path    string // create, delete, setData, setACL
	data    []byte // create, setData; the password of createSession
	acl     []wire.ACL
	owner   int64 // create: the ephemeral owner as stored
	version int32 // setData, setACL; the number that jumpSequence gives
	session int64 // createSession, closeSession, endSession, sessionTimeout
	timeout int32 // createSession, sessionTimeout, ms
	err     wire.ErrCode
	subs    []txn // multi

	// stat is what apply leaves for the answer of a create or a setData.
	stat wire.Stat
}

// commit records the transaction, applies it and tells the watchers. It returns
// its id. The record is made first, from what was decided; apply adds the Stats
// that the answer needs.
func (t *Tree) commit(x *txn, now Now, out *Out) int64 {
	if x.op != opSessionTimeout {
		t.nextZxid()
	}
	t.record = appendTxn(t.record[:0], t.zxid, now.Wall, x)
	if cap(t.record) > keepRecord {
		out.record(t.record)
		t.record = nil
	} else {
		out.record(bytes.Clone(t.record))
	}
	t.apply(x, t.zxid, now.Wall, out)
	return t.zxid
}

// apply makes the changes of a transaction that fits the state: prep or misfit
// said so. It decides nothing, and depends on nothing but the state and its
// arguments; that is what makes a replay give the same state.
func (t *Tree) apply(x *txn, zxid, wall int64, out *Out) {
	switch x.op {
	case wire.OpCreate:
		t.applyCreate(x, zxid, wall, out)
	case wire.OpDelete:
		t.removeNode(t.nodes.get(x.path), zxid, out)
	case wire.OpSetData:
		t.applySetData(x, zxid, wall, out)
	case wire.OpSetACL:
		// The new list first: releasing the old one could drop it if they are
		// equal.
		n := t.nodes.get(x.path)
		set := t.acls.intern(x.acl)
		t.acls.release(t.acls.of(n))
		n.acl, n.own().aversion = set.place, x.version
		x.stat = n.stat()
	case wire.OpMulti:
		for i := range x.subs {
			t.apply(&x.subs[i], zxid, wall, out)
		}
	case wire.OpCreateSession:
		t.addSession(x.session, x.timeout, x.data)
	case wire.OpCloseSession:
		t.removeSession(t.sessions[x.session], zxid, out)
	case opEndSession:
		s := t.sessions[x.session]
		s.own().ending = true
		t.unclock(s)
	case opSessionTimeout:
		t.sessions[x.session].timeout = x.timeout
	case opJumpSequence:
		t.nodes.get(x.path).own().creates = x.version
	}
}

// applyCreate adds the node and fires the watches on it and on its parent's
// children (DataTree.createNode).
func (t *Tree) applyCreate(x *txn, zxid, wall int64, out *Out) {
	parentPath, _ := parentOf(x.path)
	p := t.lookup(parentPath)
	acl := t.acls.intern(x.acl)
	n := &node{acl: acl.place, owner: x.owner, czxid: zxid, ctime: wall}
	n.setText(x.path, x.data)
	// At 2^31-1 the counter stays where it is, as Java's does, and the number
	// of sequential names with it.
	if r := p.own(); r.creates < math.MaxInt32 {
		r.creates++
		r.pzxid = zxid
	}
	p.attach(n)
	t.nodes.put(n)
	t.dataSize += n.size()
	t.index(n)
	// The Stat of this moment: a later operation of a multi may change the node.
	x.stat = n.stat()
	t.countCreated(n)
	if t.watches.recursive > 0 && len(t.watches.byPath[x.path]) > 0 {
		n.own().hears = true
	}
	t.fire(n, wire.EventNodeCreated, acl, out)
	t.fireChildren(p, out)
}

// index enters the node where nodes of its kind are looked for: by the sweep, at
// the end of its session, or as a quota.
func (t *Tree) index(n *node) {
	t.indexQuota(n, true)
	if len(t.quotas) > 0 {
		if _, ok := t.quotas[n.path()]; ok {
			n.own().limited = true
		}
	}
	switch kindOf(n.owner) {
	case container:
		t.containers.add(n)
	case ttlNode:
		t.ttls.add(n)
	case ephemeral:
		t.sessions[n.owner].own().add(n)
		t.ephemerals++
	}
}

// removeNode deletes a node without children and fires its watches
// (DataTree.deleteNode).
func (t *Tree) removeNode(n *node, zxid int64, out *Out) {
	// Every trace of the node goes before anybody hears of it. Its list of
	// permissions is needed until the last event went out.
	p, path, acl := n.parent, n.path(), t.acls.of(n)
	n.detach()
	p.more.pzxid = max(p.more.pzxid, zxid)
	t.nodes.remove(path)
	t.dataSize -= n.size()
	switch kindOf(n.owner) {
	case container:
		t.containers.removed()
	case ttlNode:
		t.ttls.removed()
	case ephemeral:
		t.sessions[n.owner].owned.removed()
		t.ephemerals--
	}
	t.indexQuota(n, false)
	t.count(path, -1, -int64(len(n.data())))
	t.fireDeleted(path, p, acl, out)
	t.fireChildren(p, out)
	t.acls.release(acl)
	// A list may have the node a while longer, and is not to keep its data.
	n.text, n.cut, n.more = "", 0, nil
	t.steps += removalSteps + len(path)/textPerStep
}

// applySetData replaces a node's data (DataTree.setData). The old bytes are left
// alone: an answer on its way may still refer to them.
func (t *Tree) applySetData(x *txn, zxid, wall int64, out *Out) {
	n := t.nodes.get(x.path)
	more := t.setText(n, x.data)
	r := n.own()
	r.mzxid, r.mtime, r.version = zxid, wall, x.version
	x.stat = n.stat()
	t.count(x.path, 0, more)
	t.fire(n, wire.EventNodeDataChanged, t.acls.of(n), out)
}

// setText replaces a node's data and returns how many bytes more it has.
func (t *Tree) setText(n *node, data []byte) int64 {
	more := int64(len(data)) - int64(len(n.data()))
	n.setText(n.path(), data)
	n.countAbove(0, more)
	t.dataSize += more
	return more
}
