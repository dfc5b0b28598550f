package tree

import (
	"bytes"
	"math"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// opSessionTimeout is the transaction that changes a session's timeout. ZooKeeper
// does not have it.
const opSessionTimeout wire.OpCode = -12

// opEndSession is the transaction that begins the end of a session with many nodes.
// ZooKeeper does not have it.
const opEndSession wire.OpCode = -14

// typicalOp is how many bytes of the record a typical operation of a multi takes.
const typicalOp = 80

// maxKeptRecord is the largest record buffer that is kept for the next record.
const maxKeptRecord = 64 << 10

// txn is the result of a write after all decisions: a sequential name has its number,
// a version is the new one, and an access control list is the one to store. op
// determines which fields are valid.
type txn struct {
	op      wire.OpCode
	path    string // create, delete, setData, setACL
	data    []byte // create, setData; the password of createSession
	acl     []wire.ACL
	owner   int64 // create: the ephemeral owner as stored
	version int32 // setData, setACL; the number set by jumpSequence
	session int64 // createSession, closeSession, endSession, sessionTimeout
	timeout int32 // createSession, sessionTimeout, ms
	err     wire.ErrCode
	subs    []txn // multi

	// stat is set by apply, for the answer of a create or a setData.
	stat wire.Stat
}

// commit records the transaction, applies it, and notifies watchers. It returns the
// transaction's ID. The record is encoded before apply, which only adds the Stats for
// the answer.
func (t *Tree) commit(x *txn, now Now, out *Out) int64 {
	if x.op != opSessionTimeout {
		t.nextZxid()
	}
	t.record = appendTxn(slices.Grow(t.record[:0], len(x.subs)*typicalOp), t.zxid, now.Wall, x)
	t.recordBytes += len(t.record)
	if cap(t.record) > maxKeptRecord {
		out.record(t.record)
		t.record = nil
	} else {
		out.record(bytes.Clone(t.record))
	}
	t.apply(x, t.zxid, now.Wall, out)
	t.storeUsage()
	return t.zxid
}

// apply makes the changes of a transaction that preparer or conflict has checked. It
// makes no decisions, and depends only on the state and its arguments. So a replay
// produces the same state.
func (t *Tree) apply(x *txn, zxid, wall int64, out *Out) {
	switch x.op {
	case wire.OpCreate:
		t.applyCreate(x, zxid, wall, out)
	case wire.OpDelete:
		t.removeNode(t.nodes.get(x.path), zxid, out)
	case wire.OpSetData:
		t.applySetData(x, zxid, wall, out)
	case wire.OpSetACL:
		// The new list is interned first: if the lists are equal, releasing the old
		// one could drop it.
		n := t.nodes.get(x.path)
		set := t.acls.intern(x.acl)
		t.acls.release(t.acls.of(n))
		n.acl, n.ensureExtra().aversion = set.number, x.version
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
		s.ensureOwned().ending = true
		t.stopExpiry(s)
	case opSessionTimeout:
		t.sessions[x.session].timeout = x.timeout
	case opJumpSequence:
		t.nodes.get(x.path).ensureExtra().creates = x.version
	}
}

// applyCreate adds the node and fires the watches on it and on its parent's children
// (DataTree.createNode).
func (t *Tree) applyCreate(x *txn, zxid, wall int64, out *Out) {
	t.storeUsageBefore(x.path)
	parentPath, _ := parentOf(x.path)
	p := t.lookup(parentPath)
	acl := t.acls.intern(x.acl)
	n := &node{acl: acl.number, owner: x.owner, czxid: zxid, ctime: wall}
	n.setText(x.path, x.data)
	// At 2^31-1 the counter stops, as in Java, and so does the number in sequential
	// names.
	if r := p.ensureExtra(); r.creates < math.MaxInt32 {
		r.creates++
		r.pzxid = zxid
	}
	p.attach(n)
	t.nodes.put(n)
	t.dataSize += n.size()
	t.index(n)
	// The present Stat, because a later operation of a multi may change the node.
	x.stat = n.stat()
	t.countCreated(n)
	if t.watches.recursive > 0 && len(t.watches.byPath[x.path]) > 0 {
		n.ensureExtra().recursiveWatch = true
	}
	t.fire(n, wire.EventNodeCreated, acl, out)
	t.fireChildren(p, out)
}

// index adds the node to the structures for its kind: the list for the sweep, the
// list of its session, or the quotas.
func (t *Tree) index(n *node) {
	t.indexQuota(n, true)
	if len(t.quotas) > 0 {
		if _, ok := t.quotas[n.path()]; ok {
			n.ensureExtra().hasQuota = true
		}
	}
	switch kindOf(n.owner) {
	case container:
		t.containers.add(n)
	case ttlNode:
		t.ttls.add(n)
	case ephemeral:
		t.sessions[n.owner].ensureOwned().add(n)
		t.ephemerals++
	}
}

// removeNode deletes a node without children and fires its watches
// (DataTree.deleteNode).
func (t *Tree) removeNode(n *node, zxid int64, out *Out) {
	// The node is removed completely before any client is notified. Its access
	// control list is needed until the last event.
	p, path, acl := n.parent, n.path(), t.acls.of(n)
	t.storeUsageBefore(path)
	n.detach()
	p.extra.pzxid = max(p.extra.pzxid, zxid)
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
	// A list may refer to the node for a while, and must not retain its data.
	n.text, n.dataStart, n.extra = "", 0, nil
	t.steps += removalSteps + len(path)/textPerStep + t.walkSteps(path)
}

// applySetData replaces a node's data (DataTree.setData). The old bytes are not
// modified, because an answer may still refer to them.
func (t *Tree) applySetData(x *txn, zxid, wall int64, out *Out) {
	t.storeUsageBefore(x.path)
	n := t.nodes.get(x.path)
	more := t.setText(n, x.data)
	r := n.ensureExtra()
	r.mzxid, r.mtime, r.version = zxid, wall, x.version
	x.stat = n.stat()
	t.count(x.path, 0, more)
	t.fire(n, wire.EventNodeDataChanged, t.acls.of(n), out)
}

// setText replaces a node's data and returns by how many bytes it grew.
func (t *Tree) setText(n *node, data []byte) int64 {
	more := int64(len(data)) - int64(len(n.data()))
	n.setText(n.path(), data)
	n.countAbove(0, more)
	t.dataSize += more
	return more
}
