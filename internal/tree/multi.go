package tree

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// multi does all operations in one transaction, or none. Its answer has no
// error in the header: the results tell. Only what can't be understood fails it
// as a whole.
func (t *Tree) multi(c *conn, m *wire.MultiRequest, now Now, out *Out) (wire.Record, wire.ErrCode) {
	if len(m.Ops) > maxOps {
		return nil, t.fail(wire.ErrBadArguments, now, out)
	}
	// All are checked before any is applied. There is nothing to undo when one
	// fails, and no watcher hears of a change that did not stay.
	p := prep{t: t, c: c, over: make(map[string]view), subtrees: make(map[string]string)}
	defer t.keepAnswers(c)()
	x := txn{op: wire.OpMulti, subs: make([]txn, len(m.Ops))}
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.Op = multiKind(op); op.Op == wire.OpError {
			return nil, t.fail(wire.ErrMarshalling, now, out)
		}
		var err wire.ErrCode
		if x.subs[i], err = p.prepare(op.Op, op.Req); err != wire.ErrOK {
			t.fail(err, now, out)
			return failedMulti(len(m.Ops), i, err), wire.ErrOK
		}
	}
	i, err := t.roomForMulti(x.subs)
	if err == wire.ErrOK {
		i, err = t.roomForEvents(x.subs)
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

// multiKind is what an operation of a multi is: Java goes by a create's mode
// there, not by its opcode, so both ordinary creates answer the path alone, and
// a mode with a TTL in a record without one can't be read (OpError).
func multiKind(op *wire.MultiOp) wire.OpCode {
	q, ok := op.Req.(*wire.CreateRequest)
	switch {
	case !ok:
		return op.Op
	case q.Flags.Container():
		return wire.OpCreateContainer
	case q.Flags.TTL():
		return wire.OpError
	}
	return wire.OpCreate
}

// failedMulti is the answer when the operation at failed did not go: those
// before it were undone, those behind it not tried. Clients find the reason by
// looking for the first code that is neither zero nor RuntimeInconsistency.
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

// multiRead does several reads; each has its own result, and one that fails does
// not fail the others. They all see one state, for nothing comes in between. None
// sets a watch: Java forgets the flag when it takes the request apart
// (Op.GetData.toRequestRecord).
func (t *Tree) multiRead(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var m wire.MultiReadRequest
	if m.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	resp := &wire.MultiResponse{Results: make([]wire.MultiResult, len(m.Ops))}
	defer t.keepAnswers(c)()
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
		// A short request can ask for the same long answer many times.
		if size += replyCost(res.Resp); size > t.cfg.MaxReply || t.exhausted() {
			t.tallies.RefusedReplies++
			return nil, wire.ErrQuotaExceeded
		}
	}
	return resp, wire.ErrOK
}
