package wire

import "github.com/zklock/zklock/internal/jute"

// MultiOp is one operation inside a multi. Req is a record of the type that
// [NewRequest] returns for Op.
type MultiOp struct {
	Op  OpCode
	Req Record
}

// MultiRequest executes all of its operations or none of them (OpMulti,
// org.apache.zookeeper.MultiOperationRecord). It may be empty. It may contain creates
// of all kinds, deletes, setData, and checks, but no other multi.
type MultiRequest struct {
	Ops []MultiOp
}

// Decode reads operations up to the end marker. Their buffers alias the frame.
func (m *MultiRequest) Decode(r *jute.Reader) {
	m.Ops = decodeOps(r, "multi", func(op OpCode) bool {
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
			return true
		}
		return false
	})
}

// Append appends the operations and the end marker.
func (m *MultiRequest) Append(b []byte) []byte {
	return appendOps(b, m.Ops)
}

// MultiReadRequest reads several znodes at one moment (OpMultiRead) with getData and
// getChildren, whose Watch fields servers ignore. Each read has its own result; a
// failed read does not fail the others.
type MultiReadRequest struct {
	Ops []MultiOp
}

// Decode reads operations up to the end marker.
func (m *MultiReadRequest) Decode(r *jute.Reader) {
	m.Ops = decodeOps(r, "multiRead", func(op OpCode) bool {
		return op == OpGetData || op == OpGetChildren
	})
}

// Append appends the operations and the end marker.
func (m *MultiReadRequest) Append(b []byte) []byte {
	return appendOps(b, m.Ops)
}

// decodeOps reads the operations of a request. The list grows with each operation,
// because its length is not on the wire.
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

// appendOps appends the operations of a request and the end marker.
func appendOps(b []byte, ops []MultiOp) []byte {
	for _, op := range ops {
		b = appendMultiHeader(b, multiHeader{op: op.Op, err: multiNoErr})
		b = op.Req.Append(b)
	}
	return appendMultiEnd(b)
}

// multiNoErr is the error field of a multi's header if there is no result: before an
// operation, and in the end marker.
const multiNoErr ErrCode = -1

// multiHeader precedes each operation and each result of a multi. With done set, it
// is the end marker (org.apache.zookeeper.proto.MultiHeader).
type multiHeader struct {
	op   OpCode
	done bool
	err  ErrCode
}

// decodeMultiHeader reads the 9 bytes. Java ignores the other fields of an end
// marker. Here they must have the values that all implementations send, so that the
// record encodes to the same bytes.
func decodeMultiHeader(r *jute.Reader) multiHeader {
	h := multiHeader{op: OpCode(r.Int32()), done: r.Bool(), err: ErrCode(r.Int32())}
	if h.done && (h.op != OpError || h.err != multiNoErr) {
		r.Failf("end of a multi with operation %d and error %d, want -1 and -1", int32(h.op), int32(h.err))
	}
	return h
}

// appendMultiHeader appends the 9 bytes.
func appendMultiHeader(b []byte, h multiHeader) []byte {
	b = jute.AppendInt32(b, int32(h.op))
	b = jute.AppendBool(b, h.done)
	return jute.AppendInt32(b, int32(h.err))
}

// appendMultiEnd appends the end marker.
func appendMultiEnd(b []byte) []byte {
	return appendMultiHeader(b, multiHeader{op: OpError, done: true, err: multiNoErr})
}

// MultiResult is one result of a multi or a multiRead. Op is the kind of the result:
// the code of the operation, OpCreate2 for a container or a TTL znode, or OpError for
// a failure, whose code is in Err. Err is ErrOK otherwise. Resp is nil for a failure,
// and for OpDelete and OpCheck, whose results have no body.
type MultiResult struct {
	Op   OpCode
	Err  ErrCode
	Resp Record
}

// MultiResponse answers OpMulti and OpMultiRead with one result per operation, in
// their order (org.apache.zookeeper.MultiResponse). If a multi failed, every result
// is an OpError: with ErrOK before the failed operation, with its error code at that
// operation, and with ErrRuntimeInconsistency after it.
type MultiResponse struct {
	Results []MultiResult
}

// Decode reads results up to the end marker. Their buffers alias the frame.
func (m *MultiResponse) Decode(r *jute.Reader) {
	m.Results = nil
	for {
		h := decodeMultiHeader(r)
		if r.Err() != nil || h.done {
			return
		}
		res := decodeResult(r, h)
		if r.Err() != nil {
			return
		}
		m.Results = append(m.Results, res)
	}
}

// Append appends the results and the end marker. A failed result is written as by
// Java: with OpError and the error code in the header, and the code again as the
// body.
func (m *MultiResponse) Append(b []byte) []byte {
	for _, res := range m.Results {
		b = appendMultiHeader(b, multiHeader{op: res.Op, err: res.Err})
		switch {
		case res.Op == OpError:
			b = (&ErrorResponse{Err: res.Err}).Append(b)
		case res.Resp != nil:
			b = res.Resp.Append(b)
		}
	}
	return appendMultiEnd(b)
}

// decodeResult reads the body after the header h.
func decodeResult(r *jute.Reader, h multiHeader) MultiResult {
	res := MultiResult{Op: h.op, Err: h.err}
	if h.op == OpError {
		var body ErrorResponse
		body.Decode(r)
		if body.Err != h.err {
			r.Failf("result with error %d in the header and %d in the body", int32(h.err), int32(body.Err))
		}
		return res
	}
	if h.err != ErrOK {
		r.Failf("result of %s with error %d", h.op, int32(h.err))
		return res
	}
	switch h.op {
	case OpDelete, OpCheck:
		return res
	case OpCreate, OpCreate2, OpSetData, OpGetData, OpGetChildren:
		res.Resp = NewResponse(h.op)
		res.Resp.Decode(r)
	default:
		r.Failf("result of %s inside a multi", h.op)
	}
	return res
}
