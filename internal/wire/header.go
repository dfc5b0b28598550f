package wire

import "github.com/zklock/zklock/internal/jute"

// Request numbers with a special meaning. A client numbers its requests from 1.
// Answers arrive in the order of the requests.
const (
	XidEvent      int32 = -1 // a watch event, which answers no request
	XidPing       int32 = -2
	XidAuth       int32 = -4 // a server echoes whatever xid the auth packet had
	XidSetWatches int32 = -8
)

// RequestHeader precedes the body of every request except the first.
type RequestHeader struct {
	Xid int32
	Op  OpCode
}

// Decode reads the 8 bytes.
func (h *RequestHeader) Decode(r *jute.Reader) {
	h.Xid = r.Int32()
	h.Op = OpCode(r.Int32())
}

// Append appends the 8 bytes.
func (h *RequestHeader) Append(b []byte) []byte {
	b = jute.AppendInt32(b, h.Xid)
	return jute.AppendInt32(b, int32(h.Op))
}

// ReplyHeader precedes the body of every answer except the first, and of events. Zxid
// is the last transaction that the server had applied; for a write, it is the write's
// own. In an event it is -1 or, with servers 3.9 or later, the zxid of the change,
// which a client must not record as its last seen zxid.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Err  ErrCode
}

// Decode reads the 16 bytes.
func (h *ReplyHeader) Decode(r *jute.Reader) {
	h.Xid = r.Int32()
	h.Zxid = r.Int64()
	h.Err = ErrCode(r.Int32())
}

// Append appends the 16 bytes.
func (h *ReplyHeader) Append(b []byte) []byte {
	b = jute.AppendInt32(b, h.Xid)
	b = jute.AppendInt64(b, h.Zxid)
	return jute.AppendInt32(b, int32(h.Err))
}
