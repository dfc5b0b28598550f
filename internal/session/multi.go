package session

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// multiHeaderSize is what stands before each operation and result of a multi.
const multiHeaderSize = 9

// appendMulti appends the operations of a multi and the end mark. It does what
// wire.MultiRequest does without a record an operation: a multi of many locks
// must not cost an allocation each.
func appendMulti(b []byte, ops []Op) []byte {
	for i := range ops {
		b = appendMultiHeader(b, ops[i].Code, false)
		b = ops[i].appendTo(b)
	}
	return appendMultiHeader(b, wire.OpError, true)
}

// appendMultiHeader appends a header without a result.
func appendMultiHeader(b []byte, op wire.OpCode, done bool) []byte {
	b = jute.AppendInt32(b, int32(op))
	b = jute.AppendBool(b, done)
	return jute.AppendInt32(b, -1)
}

// decodeMulti reads the results of o's operations into res.Sub, whose room it
// uses again. There must be one for each, of its kind or an error.
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
		decodeSub(r, sub, answerKind(sub.Code), op, code, &res.Sub[len(res.Sub)-1])
	}
	if len(res.Sub) != len(o.Sub) {
		r.Failf("%d results for the %d operations of the multi", len(res.Sub), len(o.Sub))
		return
	}
	if o.Code == wire.OpMulti && !settleMulti(res) {
		r.Failf("failures without a code in a multi")
	}
}

// decodeSub reads one result behind its header, which must be of the kind want or
// an error.
func decodeSub(r *jute.Reader, o *Op, want, op wire.OpCode, code wire.ErrCode, sub *SubResult) {
	if op == wire.OpError {
		sub.Code, sub.failed = wire.ErrCode(r.Int32()), true
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
		sub.Data = cloneBuffer(r.Buffer())
		sub.Stat.Decode(r)
	case wire.OpGetChildren:
		sub.Children = r.Strings()
	}
}

// answerKind is the code that a successful result has for the operation code.
func answerKind(code wire.OpCode) wire.OpCode {
	if code == wire.OpCreateContainer || code == wire.OpCreateTTL {
		return wire.OpCreate2
	}
	return code
}

// settleMulti finds out which operation made a multi fail. Before it servers
// put 0, behind it -2; both become ErrRuntimeInconsistency here: not done. It
// reports false if some failed and none says why: then nothing is known.
func settleMulti(res *Result) bool {
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
