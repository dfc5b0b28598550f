package tree

import (
	"github.com/zklock/zklock/internal/wire"
)

// remove checks a delete (PrepRequestProcessor.pRequest2Txn, OpCode.delete). The
// permission is the parent's to give. The order is Java's: without permission a
// client does not even learn whether the node exists, and a wrong version is
// reported before children are. The path's validity is never asked for: a bad
// path has no node.
func (p *prep) remove(q *wire.DeleteRequest) (txn, wire.ErrCode) {
	parentPath, ok := parentOf(q.Path)
	if !ok || isSpecial(q.Path) {
		return txn{}, wire.ErrBadArguments
	}
	parent, ok := p.find(parentPath)
	if !ok {
		return txn{}, wire.ErrNoNode
	}
	if !p.may(parent, wire.PermDelete) {
		return txn{}, wire.ErrNoAuth
	}
	v, ok := p.find(q.Path)
	if !ok {
		return txn{}, wire.ErrNoNode
	}
	if _, err := nextVersion(v.version, q.Version); err != wire.ErrOK {
		return txn{}, err
	}
	if v.children > 0 {
		return txn{}, wire.ErrNotEmpty
	}
	parent.children--
	p.change(parentPath, parent)
	p.change(q.Path, view{gone: true})
	return txn{op: wire.OpDelete, path: q.Path}, wire.ErrOK
}

// setData checks a change of data. The new version goes into the transaction, so
// that a replay need not know how versions are counted.
func (p *prep) setData(q *wire.SetDataRequest) (txn, wire.ErrCode) {
	v, err := p.writable(q.Path, wire.PermWrite)
	if err != wire.ErrOK {
		return txn{}, err
	}
	if !validQuota(q.Path, q.Data) {
		return txn{}, wire.ErrBadArguments
	}
	if err := p.t.checkQuota(q.Path, 0, int64(len(q.Data)-v.length), p.subtrees); err != wire.ErrOK {
		return txn{}, err
	}
	if v.version, err = nextVersion(v.version, q.Version); err != wire.ErrOK {
		return txn{}, err
	}
	v.length = len(q.Data)
	p.change(q.Path, v)
	return txn{op: wire.OpSetData, path: q.Path, data: q.Data, version: v.version}, wire.ErrOK
}

// check checks a version, and nothing more. It stands in a multi only. Its
// transaction is empty: once the multi is decided there is nothing to repeat.
func (p *prep) check(q *wire.CheckVersionRequest) (txn, wire.ErrCode) {
	v, err := p.writable(q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return txn{}, err
	}
	if _, err = nextVersion(v.version, q.Version); err != wire.ErrOK {
		return txn{}, err
	}
	return txn{op: wire.OpCheck}, wire.ErrOK
}

// setACL checks a new access control list, the list before the node. The version
// it compares and counts is the list's own, not the data's. No multi can hold
// one, so there is nobody behind it to tell.
func (p *prep) setACL(q *wire.SetACLRequest) (txn, wire.ErrCode) {
	if !validPath(q.Path) {
		return txn{}, wire.ErrBadArguments
	}
	acl, err := p.fixACL(q.ACL)
	if err != wire.ErrOK {
		return txn{}, err
	}
	v, err := p.writable(q.Path, wire.PermAdmin)
	if err != wire.ErrOK {
		return txn{}, err
	}
	version, err := nextVersion(v.aversion, q.Version)
	if err != wire.ErrOK {
		return txn{}, err
	}
	return txn{op: wire.OpSetACL, path: q.Path, acl: acl, version: version}, wire.ErrOK
}

// writable finds a node by a valid path if the requester has the permission, in
// Java's order: BadArguments, NoNode, NoAuth.
func (p *prep) writable(path string, perm wire.Perm) (view, wire.ErrCode) {
	if !validPath(path) {
		return view{}, wire.ErrBadArguments
	}
	v, ok := p.find(path)
	if !ok {
		return view{}, wire.ErrNoNode
	}
	if !p.may(v, perm) {
		return view{}, wire.ErrNoAuth
	}
	return v, wire.ErrOK
}
