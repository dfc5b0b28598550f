package tree

import (
	"fmt"
	"math"

	"github.com/zklock/zklock/internal/wire"
)

// create checks the four requests that create a node, in Java's order. It finds the
// parent before it validates the path, so some invalid paths are answered with NoNode
// (PrepRequestProcessor.pRequest2TxnCreate). Only createTTL has a ttl; for the others
// it is -1.
func (p *preparer) create(op wire.OpCode, q *wire.CreateRequest, ttl int64) (txn, wire.ErrCode) {
	// Checks of the request itself come before checks of the tree.
	if err := p.checkMode(op, q.Flags, ttl); err != wire.ErrOK {
		return txn{}, err
	}
	parentPath, ok := parentOf(q.Path)
	if !ok {
		return txn{}, wire.ErrBadArguments
	}
	acl, err := p.fixACL(q.ACL)
	if err != wire.ErrOK {
		return txn{}, err
	}
	parent, ok := p.find(parentPath)
	if !ok {
		return txn{}, wire.ErrNoNode
	}
	if !p.may(parent, wire.PermCreate) {
		return txn{}, wire.ErrNoAuth
	}
	// The name may end with a slash before the number is appended, so it is validated
	// only now.
	path := q.Path
	if q.Flags.Sequential() {
		path += fmt.Sprintf("%010d", parent.creates)
	}
	if !validPath(path) || tooDeep(path) {
		return txn{}, wire.ErrBadArguments
	}
	if _, ok := p.find(path); ok {
		return txn{}, wire.ErrNodeExists
	}
	// As in Java this comes after the other checks, which distinguish an ephemeral
	// parent from a missing one.
	if kindOf(parent.owner) == ephemeral {
		return txn{}, wire.ErrNoChildrenForEphemerals
	}
	if !validQuota(path, q.Data) {
		return txn{}, wire.ErrBadArguments
	}
	if !p.maySetQuota(path) {
		return txn{}, wire.ErrNoAuth
	}
	if err := p.checkQuota(path, 1, int64(len(q.Data))); err != wire.ErrOK {
		return txn{}, err
	}
	x := txn{op: wire.OpCreate, path: path, data: q.Data, acl: acl, owner: p.ownerFor(op, q.Flags, ttl)}
	if parent.creates < math.MaxInt32 {
		parent.creates++
	}
	parent.children++
	// Later operations of a multi see the next number, and the node. Outside a multi
	// these views would be unused.
	if p.pending != nil {
		p.change(parentPath, parent)
		p.change(path, nodeView{length: len(q.Data), owner: x.owner, acl: p.lastACL.unfinished()})
	}
	return x, wire.ErrOK
}

// checkMode checks that the mode is valid and permitted with op (CreateMode.fromFlag,
// EphemeralType.validateTTL). A createTTL with a mode without a TTL, and without a
// ttl, passes Java's check and then crashes the server. Here it is a bad argument
// like the others.
func (p *preparer) checkMode(op wire.OpCode, mode wire.CreateMode, ttl int64) wire.ErrCode {
	switch {
	case !mode.Valid():
		return wire.ErrBadArguments
	case mode.TTL() && !p.t.cfg.ExtendedTypes:
		return wire.ErrUnimplemented
	case mode.TTL() && (ttl < 1 || ttl > maxTTL):
		return wire.ErrBadArguments
	case !mode.TTL() && (ttl >= 0 || op == wire.OpCreateTTL):
		return wire.ErrBadArguments
	}
	return wire.ErrOK
}

// ownerFor returns the ephemeral owner to store. As in Java, the request creates the
// container, whatever its mode. The container mode in another request creates a
// persistent node.
func (p *preparer) ownerFor(op wire.OpCode, mode wire.CreateMode, ttl int64) int64 {
	switch {
	case op == wire.OpCreateContainer:
		return containerOwner
	case mode.TTL():
		return ttlMask | ttl
	case mode.Ephemeral():
		return p.c.session.id
	}
	return 0
}

// opJumpSequence is the transaction that advances a node's create counter. ZooKeeper
// does not have it.
const opJumpSequence wire.OpCode = -13

// JumpSequence makes next the number of the next sequential child of the node at
// path, as if that many children had been created and deleted. With it, tests can
// reach numbers near 2^31. It returns ErrNoNode, or ErrBadArguments if the counter
// has passed next, because numbers are never reused.
func (t *Tree) JumpSequence(path string, next int32, now Now, out *Out) wire.ErrCode {
	x := txn{op: opJumpSequence, path: path, version: next}
	switch n := t.nodes.get(path); {
	case t.readOnly:
		return wire.ErrNotReadOnly
	case n == nil:
		return wire.ErrNoNode
	case t.conflict(&x) != "":
		return wire.ErrBadArguments
	}
	t.commit(&x, now, out)
	return wire.ErrOK
}
