package tree

import (
	"github.com/zklock/zklock/internal/wire"
)

// remove checks a delete (PrepRequestProcessor.pRequest2Txn, OpCode.delete). The
// permission is on the parent. The order of the checks is Java's. A client without
// permission does not learn whether the node exists, and a wrong version is reported
// before children are. The path is not validated, because an invalid path has no
// node.
func (p *preparer) remove(q *wire.DeleteRequest) (txn, wire.ErrCode) {
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
	// A deletion exceeds no quota. This counts the time to store the quota's usage.
	if err := p.checkQuota(q.Path, 0, 0); err != wire.ErrOK {
		return txn{}, err
	}
	parent.children--
	p.change(parentPath, parent)
	p.change(q.Path, nodeView{deleted: true})
	return txn{op: wire.OpDelete, path: q.Path}, wire.ErrOK
}

// setData checks a change of data. The transaction has the new version, so a replay
// need not know how versions are counted.
func (p *preparer) setData(q *wire.SetDataRequest) (txn, wire.ErrCode) {
	v, err := p.writable(q.Path, wire.PermWrite)
	if err != wire.ErrOK {
		return txn{}, err
	}
	if !validQuota(q.Path, q.Data) {
		return txn{}, wire.ErrBadArguments
	}
	if !p.maySetQuota(q.Path) {
		return txn{}, wire.ErrNoAuth
	}
	if err := p.checkQuota(q.Path, 0, int64(len(q.Data)-v.length)); err != wire.ErrOK {
		return txn{}, err
	}
	if v.version, err = nextVersion(v.version, q.Version); err != wire.ErrOK {
		return txn{}, err
	}
	v.length = len(q.Data)
	p.change(q.Path, v)
	return txn{op: wire.OpSetData, path: q.Path, data: q.Data, version: v.version}, wire.ErrOK
}

// check checks only a version. It occurs only in a multi. Its transaction is empty,
// because there is nothing to repeat once the multi is decided.
func (p *preparer) check(q *wire.CheckVersionRequest) (txn, wire.ErrCode) {
	v, err := p.writable(q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return txn{}, err
	}
	if _, err = nextVersion(v.version, q.Version); err != wire.ErrOK {
		return txn{}, err
	}
	return txn{op: wire.OpCheck}, wire.ErrOK
}

// setACL checks a new access control list, the list before the node. The version is
// that of the list, not of the data. A multi cannot contain a setACL, so no later
// operation needs to see it.
func (p *preparer) setACL(q *wire.SetACLRequest) (txn, wire.ErrCode) {
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
	if !p.t.mayReadUsage(p.c, q.Path) { // the answer has the length of the data
		return txn{}, wire.ErrNoAuth
	}
	version, err := nextVersion(v.aversion, q.Version)
	if err != wire.ErrOK {
		return txn{}, err
	}
	return txn{op: wire.OpSetACL, path: q.Path, acl: acl, version: version}, wire.ErrOK
}

// writable returns the node at a path if the path is valid and the requester has the
// permission. The order of the checks is Java's: BadArguments, NoNode, NoAuth.
func (p *preparer) writable(path string, perm wire.Perm) (nodeView, wire.ErrCode) {
	if !validPath(path) {
		return nodeView{}, wire.ErrBadArguments
	}
	v, ok := p.find(path)
	if !ok {
		return nodeView{}, wire.ErrNoNode
	}
	if !p.may(v, perm) {
		return nodeView{}, wire.ErrNoAuth
	}
	return v, wire.ErrOK
}
