package wire

import "github.com/zklock/zklock/internal/jute"

// multiNoErr is what stands in the error field of a multi's headers where
// there is no result: before an operation, and in the end mark.
const multiNoErr ErrCode = -1

// multiHeader stands before each operation and each result of a multi, and
// alone, with done set, at the end (org.apache.zookeeper.proto.MultiHeader).
type multiHeader struct {
	op   OpCode
	done bool
	err  ErrCode
}

// decodeMultiHeader reads the 9 bytes. Java ignores the other fields of an end
// mark; here it must be the one that everybody sends, or it could not be
// written again as it was.
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

// appendMultiEnd appends the end mark.
func appendMultiEnd(b []byte) []byte {
	return appendMultiHeader(b, multiHeader{op: OpError, done: true, err: multiNoErr})
}
