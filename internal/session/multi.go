package session

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// multiHeaderSize is the size of the header of each operation and result in a multi.
const multiHeaderSize = 9

// appendMulti appends the operations of a multi and the end marker. Unlike
// wire.MultiRequest, it needs no record per operation, so a multi of many locks does
// not allocate for each.
func appendMulti(b []byte, ops []Op) []byte {
	for i := range ops {
		b = appendMultiHeader(b, ops[i].Code, false)
		b = ops[i].appendTo(b)
	}
	return appendMultiHeader(b, wire.OpError, true)
}

// appendMultiHeader appends a multi header with error code -1, as requests have it.
func appendMultiHeader(b []byte, op wire.OpCode, done bool) []byte {
	b = jute.AppendInt32(b, int32(op))
	b = jute.AppendBool(b, done)
	return jute.AppendInt32(b, -1)
}

// decodeMulti reads the results of o's operations into res.Sub and reuses its memory.
// There must be one result per operation: of its kind, or an error.
func decodeMulti(r *jute.Reader, o *Op, res *Result) {
	res.Sub = res.Sub[:0]
	for {
		op, done, code := wire.OpCode(r.Int32()), r.Bool(), wire.ErrCode(r.Int32())
		if r.Err() != nil {
			return
		}
		if done {
			break
		}
		if len(res.Sub) == len(o.Sub) {
			r.Failf("more results than the %d operations of the multi", len(o.Sub))
			return
		}
		res.Sub = append(res.Sub, SubResult{})
		sub := &o.Sub[len(res.Sub)-1]
		decodeSub(r, sub, resultCode(sub.Code), op, code, &res.Sub[len(res.Sub)-1])
	}
	if len(res.Sub) != len(o.Sub) {
		r.Failf("%d results for the %d operations of the multi", len(res.Sub), len(o.Sub))
		return
	}
	if o.Code == wire.OpMulti && !resolveMultiFailure(res) {
		r.Failf("failures without an error code in a multi")
	}
}

// decodeSub reads one result after its header. The result must be of the kind want or
// an error.
func decodeSub(r *jute.Reader, o *Op, want, op wire.OpCode, code wire.ErrCode, sub *SubResult) {
	if op == wire.OpError {
		sub.Code, sub.failed = wire.ErrCode(r.Int32()), true
		// In a multi that failed, writes that were not executed have the code 0. A read has
		// failed by itself.
		if sub.Code == wire.ErrOK && (want == wire.OpGetData || want == wire.OpGetChildren) {
			r.Failf("a read that failed without an error code in a multi")
		}
		return
	}
	if code != wire.ErrOK || op != want {
		r.Failf("result %s with error %d for %s in a multi", op, int32(code), o.Code)
		return
	}
	switch op {
	case wire.OpCreate:
		sub.Path = decodePath(r, o.Path)
	case wire.OpCreate2:
		sub.Path = decodePath(r, o.Path)
		sub.Stat.Decode(r)
	case wire.OpSetData:
		sub.Stat.Decode(r)
	case wire.OpGetData:
		sub.Data = o.cloneData(r.Buffer())
		sub.Stat.Decode(r)
	case wire.OpGetChildren:
		sub.Children = r.Names()
	}
}

// resultCode returns the code of a successful result of an operation.
func resultCode(code wire.OpCode) wire.OpCode {
	if code == wire.OpCreateContainer || code == wire.OpCreateTTL {
		return wire.OpCreate2
	}
	return code
}

// resolveMultiFailure finds the operation that made a multi fail. Servers answer 0
// for the operations before it and -2 for those after it. Both become
// ErrRuntimeInconsistency here: not executed. It returns false if operations failed
// and none has an error code: then the outcome is unknown.
func resolveMultiFailure(res *Result) bool {
	failed := false
	for i := range res.Sub {
		failed = failed || res.Sub[i].failed
		if s := &res.Sub[i]; s.failed && s.Code != wire.ErrOK && res.Code == wire.ErrOK {
			res.Code, res.Failed = s.Code, i
		}
	}
	if res.Code == wire.ErrOK {
		return !failed
	}
	for i := range res.Sub {
		if i != res.Failed {
			res.Sub[i] = SubResult{Code: wire.ErrRuntimeInconsistency, failed: true}
		}
	}
	return true
}
