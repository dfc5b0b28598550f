package wire

import "github.com/zklock/zklock/internal/jute"

// MultiResult is one result of a multi or a multiRead. Op is the kind of the
// result: the operation's own code, OpCreate2 for a container or a TTL node,
// or OpError for a failure, whose code is in Err. Err is ErrOK otherwise. Resp
// is nil for a failure and for OpDelete and OpCheck, which have no body.
type MultiResult struct {
	Op   OpCode
	Err  ErrCode
	Resp Record
}

// MultiResponse answers OpMulti and OpMultiRead with a result an operation, in
// their order (org.apache.zookeeper.MultiResponse). When a multi failed every
// result is an OpError: ErrOK before the operation that failed, its code there,
// and ErrRuntimeInconsistency behind.
type MultiResponse struct {
	Results []MultiResult
}

// Decode reads results up to the end mark; their buffers alias the frame.
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

// Append appends the results and the end mark. A result that failed is written
// as Java does: with OpError and its code in the header, and the code again as
// the body.
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

// decodeResult reads the body behind the header h.
func decodeResult(r *jute.Reader, h multiHeader) MultiResult {
	res := MultiResult{Op: h.op, Err: h.err}
	if h.op == OpError {
		var body ErrorResponse
		body.Decode(r)
		if body.Err != h.err {
			r.Failf("result with error %d in the header and %d behind", int32(h.err), int32(body.Err))
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
