package tree

import (
	"errors"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// multi executes all operations in one transaction, or none. Its answer has no error
// in the header, because the results have the errors. Only a multi that cannot be
// decoded fails as a whole. Such a multi uses a transaction id, unless an access control
// list is null.
func (t *Tree) multi(c *conn, m *wire.MultiRequest, malformed error, now Now, out *Out) (wire.Record, wire.ErrCode) {
	if malformed == nil {
		malformed = setKinds(m.Ops)
	}
	switch {
	case malformed == errNullACL:
		return nil, wire.ErrMarshalling
	case malformed != nil:
		return nil, t.fail(wire.ErrMarshalling, now, out)
	}
	if len(m.Ops) > maxOps {
		return nil, t.fail(wire.ErrBadArguments, now, out)
	}
	// All operations are checked before any is applied. If one fails, there is
	// nothing to undo, and no watcher is notified of a change that was not made.
	p := preparer{t: t, c: c, pending: make(map[string]nodeView, len(m.Ops)), subtrees: make(map[string]string), quotas: make(map[string]quotaRoom)}
	defer t.cachePermissions()()
	x := txn{op: wire.OpMulti, subs: make([]txn, len(m.Ops))}
	for i := range m.Ops {
		op := &m.Ops[i]
		var err wire.ErrCode
		if x.subs[i], err = p.prepare(op.Op, op.Req); err != wire.ErrOK {
			t.fail(err, now, out)
			return failedMulti(len(m.Ops), i, err), wire.ErrOK
		}
		t.steps += t.walkSteps(x.subs[i].path)
	}
	i, err := t.checkMultiLimits(x.subs)
	if err == wire.ErrOK {
		i, err = t.checkEventWork(x.subs)
	}
	if err != wire.ErrOK {
		t.fail(err, now, out)
		return failedMulti(len(m.Ops), i, err), wire.ErrOK
	}
	t.commit(&x, now, out)
	resp := &wire.MultiResponse{Results: make([]wire.MultiResult, len(m.Ops))}
	for i, op := range m.Ops {
		res := &resp.Results[i]
		res.Op = op.Op
		if op.Op == wire.OpCreateContainer || op.Op == wire.OpCreateTTL {
			res.Op = wire.OpCreate2
		}
		res.Resp = answer(res.Op, &x.subs[i])
	}
	return resp, wire.ErrOK
}

// Errors of setKinds.
var (
	errMode    = errors.New("tree: a create in a multi has an invalid mode")
	errNullACL = errors.New("tree: a create in a multi has no access control list")
)

// setKinds checks the creates, and sets the opcode of those with the mode of a
// container, because Java uses the mode there. In Java, such errors are errors of
// decoding (MultiOperationRecord.deserialize). A record without a TTL cannot have the
// mode of a node with a TTL.
func setKinds(ops []wire.MultiOp) error {
	for i := range ops {
		q, ok := ops[i].Req.(*wire.CreateRequest)
		switch {
		case !ok:
		case !q.Flags.Valid():
			return errMode
		case q.ACL == nil:
			return errNullACL
		case q.Flags.TTL():
			return errMode
		case q.Flags.Container():
			ops[i].Op = wire.OpCreateContainer
		}
	}
	return nil
}

// failedMulti returns the answer if the operation at failed did not succeed: those
// before it were rolled back, and those after it not tried. Clients find the cause by
// searching for the first code that is neither zero nor RuntimeInconsistency.
func failedMulti(n, failed int, err wire.ErrCode) *wire.MultiResponse {
	resp := &wire.MultiResponse{Results: make([]wire.MultiResult, n)}
	for i := range resp.Results {
		res := &resp.Results[i]
		res.Op = wire.OpError
		switch {
		case i == failed:
			res.Err = err
		case i > failed:
			res.Err = wire.ErrRuntimeInconsistency
		}
	}
	return resp
}

// multiRead executes several reads. Each has its own result, and a failed one does
// not fail the others. They all see the same state. None sets a watch, because Java
// drops the flag (Op.GetData.toRequestRecord).
func (t *Tree) multiRead(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var m wire.MultiReadRequest
	if m.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	if len(m.Ops) > maxOps {
		return nil, wire.ErrBadArguments
	}
	resp := &wire.MultiResponse{Results: make([]wire.MultiResult, len(m.Ops))}
	defer t.cachePermissions()()
	size := 0
	for i, op := range m.Ops {
		res := &resp.Results[i]
		res.Op = op.Op
		switch q := op.Req.(type) {
		case *wire.GetDataRequest:
			q.Watch = false
			res.Resp, res.Err = t.data(c, q)
		case *wire.GetChildrenRequest:
			q.Watch = false
			res.Resp, res.Err = t.children(c, q)
		}
		if res.Err != wire.ErrOK {
			res.Op, res.Resp = wire.OpError, nil
		}
		// A short request can request the same long answer many times, and encoding
		// takes time. A single answer may have the full length.
		limit := t.cfg.MaxReply
		if i > 0 {
			limit /= multiReadShare
		}
		if size += replyCost(res.Resp); size > limit || t.exhausted() {
			t.counters.RefusedReplies++
			return nil, wire.ErrQuotaExceeded
		}
	}
	return resp, wire.ErrOK
}
