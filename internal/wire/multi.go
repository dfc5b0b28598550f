package wire

import "github.com/zklock/zklock/internal/jute"

// MultiOp is one operation inside a multi. Req is the record that [NewRequest]
// gives for Op.
type MultiOp struct {
	Op  OpCode
	Req Record
}

// MultiRequest does all of its operations or none (OpMulti,
// org.apache.zookeeper.MultiOperationRecord). It may be empty. It takes
// creates of every kind, deletes, setData and checks, and no other multi.
type MultiRequest struct {
	Ops []MultiOp
}

// Decode reads operations up to the end mark; their buffers alias the frame.
func (m *MultiRequest) Decode(r *jute.Reader) {
	m.Ops = decodeOps(r, "multi", func(op OpCode) bool {
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
			return true
		}
		return false
	})
}

// Append appends the operations and the end mark.
func (m *MultiRequest) Append(b []byte) []byte {
	return appendOps(b, m.Ops)
}

// MultiReadRequest reads several nodes at one moment (OpMultiRead): getData and
// getChildren, whose Watch fields servers ignore. Each read has its own result;
// one that fails does not fail the others.
type MultiReadRequest struct {
	Ops []MultiOp
}

// Decode reads operations up to the end mark.
func (m *MultiReadRequest) Decode(r *jute.Reader) {
	m.Ops = decodeOps(r, "multiRead", func(op OpCode) bool {
		return op == OpGetData || op == OpGetChildren
	})
}

// Append appends the operations and the end mark.
func (m *MultiReadRequest) Append(b []byte) []byte {
	return appendOps(b, m.Ops)
}

// decodeOps reads the operations of a request. The list grows as they are
// found: its length is not on the wire, so there is nothing to trust.
func decodeOps(r *jute.Reader, kind string, allowed func(OpCode) bool) []MultiOp {
	var ops []MultiOp
	for {
		h := decodeMultiHeader(r)
		if r.Err() != nil {
			return nil
		}
		if h.done {
			return ops
		}
		if !allowed(h.op) {
			r.Failf("%s inside a %s", h.op, kind)
			return nil
		}
		if h.err != multiNoErr {
			r.Failf("error %d in a %s's operation", int32(h.err), kind)
			return nil
		}
		op := MultiOp{Op: h.op, Req: NewRequest(h.op)}
		op.Req.Decode(r)
		ops = append(ops, op)
	}
}

// appendOps appends the operations of a request and the end mark.
func appendOps(b []byte, ops []MultiOp) []byte {
	for _, op := range ops {
		b = appendMultiHeader(b, multiHeader{op: op.Op, err: multiNoErr})
		b = op.Req.Append(b)
	}
	return appendMultiEnd(b)
}
