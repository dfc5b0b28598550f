package tree

import (
	"fmt"
	"math"

	"github.com/zklock/zklock/internal/wire"
)

// create checks the four requests that make a node, in Java's order: it finds
// the parent before it looks at the path's validity, so that some bad paths are
// answered with NoNode (PrepRequestProcessor.pRequest2TxnCreate). A ttl is only
// in createTTL; the others have -1.
func (p *prep) create(op wire.OpCode, q *wire.CreateRequest, ttl int64) (txn, wire.ErrCode) {
	// What the request says by itself comes before anything in the tree.
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
	// The name may end in a slash until the number is there, so its validity
	// can only be known now.
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
	// Behind the rest, as in Java: an ephemeral parent can be told from a missing
	// one by nothing else.
	if kindOf(parent.owner) == ephemeral {
		return txn{}, wire.ErrNoChildrenForEphemerals
	}
	if !validQuota(path, q.Data) {
		return txn{}, wire.ErrBadArguments
	}
	if err := p.t.checkQuota(path, 1, int64(len(q.Data)), p.subtrees); err != wire.ErrOK {
		return txn{}, err
	}
	x := txn{op: wire.OpCreate, path: path, data: q.Data, acl: acl, owner: p.ownerFor(op, q.Flags, ttl)}
	if parent.creates < math.MaxInt32 {
		parent.creates++
	}
	parent.children++
	// Those behind in a multi see the next number, and the node. Elsewhere the view
	// would be made for nobody.
	if p.over != nil {
		p.change(parentPath, parent)
		p.change(path, view{length: len(q.Data), owner: x.owner, acl: &aclSet{list: acl}})
	}
	return x, wire.ErrOK
}

// checkMode is whether the kind of node is one, and can be had with op
// (CreateMode.fromFlag, EphemeralType.validateTTL). A createTTL of a kind without
// a time to live and with none given passes Java's check and fails later, in a
// way that takes the server down; here it is a bad argument like the rest.
func (p *prep) checkMode(op wire.OpCode, mode wire.CreateMode, ttl int64) wire.ErrCode {
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

// ownerFor is the ephemeral owner to store. As in Java the request makes the
// container, whatever its mode; the container mode in another request makes a
// plain node.
func (p *prep) ownerFor(op wire.OpCode, mode wire.CreateMode, ttl int64) int64 {
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
