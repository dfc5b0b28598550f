package tree

import (
	"math"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// isWrite reports whether an operation uses a transaction id.
func isWrite(op wire.OpCode) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete,
		wire.OpSetData, wire.OpSetACL, wire.OpMulti, wire.OpReconfig:
		return true
	}
	return false
}

// write executes a write and returns its answer. A failed write uses a transaction id
// too, and its record prevents the id from being reused. As in Java, a write that cannot
// be decoded uses none, unless it is a multi.
func (t *Tree) write(c *conn, op wire.OpCode, r *jute.Reader, now Now, out *Out) (wire.Record, wire.ErrCode) {
	req := wire.NewRequest(op)
	req.Decode(r)
	if m, ok := req.(*wire.MultiRequest); ok {
		return t.multi(c, m, r.Err(), now, out)
	}
	if r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	p := preparer{t: t, c: c}
	x, err := p.prepare(op, req)
	if err != wire.ErrOK {
		return nil, t.fail(err, now, out)
	}
	t.steps += t.walkSteps(x.path)
	if err := t.checkLimits(&x); err != wire.ErrOK {
		return nil, t.fail(err, now, out)
	}
	t.commit(&x, now, out)
	return answer(op, &x), wire.ErrOK
}

// fail commits the failure of a write.
func (t *Tree) fail(err wire.ErrCode, now Now, out *Out) wire.ErrCode {
	t.commit(&txn{op: wire.OpError, err: err}, now, out)
	return err
}

// prepare checks one write of any kind except a multi, alone or as a part of one. A
// multi is refused if its permission checks take too long.
func (p *preparer) prepare(op wire.OpCode, req wire.Record) (txn, wire.ErrCode) {
	if p.t.exhausted() {
		p.t.counters.RefusedReplies++
		return txn{}, wire.ErrQuotaExceeded
	}
	switch q := req.(type) {
	case *wire.CreateRequest:
		return p.create(op, q, -1)
	case *wire.CreateTTLRequest:
		plain := wire.CreateRequest{Path: q.Path, Data: q.Data, ACL: q.ACL, Flags: q.Flags}
		return p.create(op, &plain, q.TTL)
	case *wire.DeleteRequest:
		return p.remove(q)
	case *wire.SetDataRequest:
		return p.setData(q)
	case *wire.SetACLRequest:
		return p.setACL(q)
	case *wire.CheckVersionRequest:
		return p.check(q)
	case *wire.ReconfigRequest:
		if !p.t.cfg.ReconfigEnabled {
			return txn{}, wire.ErrReconfigDisabled
		}
	}
	// A single node has nothing to reconfigure, as in Java's standalone server.
	return txn{}, wire.ErrUnimplemented
}

// answer returns the body of the answer to a successful write, or nil.
func answer(op wire.OpCode, x *txn) wire.Record {
	switch op {
	case wire.OpCreate:
		return &wire.CreateResponse{Path: x.path}
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return &wire.Create2Response{Path: x.path, Stat: x.stat}
	case wire.OpSetData:
		return &wire.SetDataResponse{Stat: x.stat}
	case wire.OpSetACL:
		return &wire.SetACLResponse{Stat: x.stat}
	}
	return nil
}

// preparer checks writes against the state and converts them to transactions. In a
// multi, each operation sees the effects of the operations before it, although none
// is applied yet.
type preparer struct {
	t *Tree
	c *conn
	// pending has the effects of earlier operations of a multi, by path. It is nil
	// outside a multi.
	pending map[string]nodeView
	// subtrees is for quotaFor, and quotas for checkQuota; nil outside a multi.
	subtrees map[string]string
	quotas   map[string]quotaRoom
	lastACL  fixedACL
	// expanded is the size of the identities that replace "auth" in the lists of this
	// request.
	expanded int
}

// nodeView is a copy of the fields of a node that checks need. A change to it affects
// what later operations of the multi see, but not the node.
type nodeView struct {
	deleted  bool
	version  int32
	aversion int32
	creates  int32
	children int32
	length   int // length of the data
	owner    int64
	acl      *aclSet
}

// find returns the view of the node at path after the earlier operations of the
// multi. The path comes from a request: an invalid one has no node. The empty text is
// the root, because it is the parent of "/a".
func (p *preparer) find(path string) (nodeView, bool) {
	if path == "" {
		path = rootPath
	}
	if v, ok := p.pending[path]; ok {
		return v, !v.deleted
	}
	n := p.t.nodes.get(path)
	if n == nil {
		return nodeView{}, false
	}
	v := nodeView{length: len(n.data()), owner: n.owner, acl: p.t.acls.of(n)}
	if r := n.extra; r != nil {
		v.version, v.aversion, v.creates, v.children = r.version, r.aversion, r.creates, r.children
	}
	return v, true
}

// change records the effect of an operation for later ones in the multi.
func (p *preparer) change(path string, v nodeView) {
	if p.pending == nil {
		return
	}
	if path == "" {
		path = rootPath
	}
	p.pending[path] = v
}

// may reports whether the requester has the permission on the node.
func (p *preparer) may(v nodeView, perm wire.Perm) bool {
	if a := v.acl; a.unindexed {
		a.index, a.unindexed = newACLIndex(a.list), false
	}
	return p.t.may(p.c, v.acl, perm)
}

// nextVersion returns the version after current if want permits the change; -1
// permits any. It skips -1, which a client could not request (ZOOKEEPER-4743).
func nextVersion(current, want int32) (int32, wire.ErrCode) {
	if want != -1 && want != current {
		return 0, wire.ErrBadVersion
	}
	switch current {
	case math.MaxInt32:
		return math.MinInt32, wire.ErrOK
	case -2, -1:
		return 0, wire.ErrOK
	}
	return current + 1, wire.ErrOK
}
