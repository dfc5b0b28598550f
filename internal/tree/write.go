package tree

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// isWrite reports whether a request takes a transaction id.
func isWrite(op wire.OpCode) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete,
		wire.OpSetData, wire.OpSetACL, wire.OpMulti, wire.OpReconfig:
		return true
	}
	return false
}

// write does a write and returns its answer. One that fails takes a transaction
// id as well, and the record of it keeps the ids from going back.
func (t *Tree) write(c *conn, op wire.OpCode, r *jute.Reader, now Now, out *Out) (wire.Record, wire.ErrCode) {
	req := wire.NewRequest(op)
	// Java has taken the transaction id before it looks at the body, but for a
	// reconfiguration.
	if req.Decode(r); r.Err() != nil {
		if op == wire.OpReconfig {
			return nil, wire.ErrMarshalling
		}
		return nil, t.fail(wire.ErrMarshalling, now, out)
	}
	if m, ok := req.(*wire.MultiRequest); ok {
		return t.multi(c, m, now, out)
	}
	p := prep{t: t, c: c}
	x, err := p.prepare(op, req)
	if err != wire.ErrOK {
		return nil, t.fail(err, now, out)
	}
	if err := t.room(&x); err != wire.ErrOK {
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

// prepare checks one write of any kind but a multi, alone or as a part of one. A multi
// is refused if to look up permissions for it takes too long.
func (p *prep) prepare(op wire.OpCode, req wire.Record) (txn, wire.ErrCode) {
	if p.t.exhausted() {
		p.t.tallies.RefusedReplies++
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
	// One node has nothing to reconfigure, as Java's standalone server.
	return txn{}, wire.ErrUnimplemented
}

// answer is the body of the answer to a write that was done, nil for none.
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
