package zktest

import (
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Frame is one message between a client and a server.
type Frame struct {
	Direction Direction
	// Op is the name of the operation in ZooKeeper's ZooDefs.OpCode, as in
	// Match.Op. A reply has the operation of its request. An event has
	// "notification". Op is empty for data that is not a ZooKeeper frame, such as
	// a four-letter word or TLS, and for the end of the stream.
	Op string
	// Path is the path of the request or the event. A multi has the path of its
	// first operation.
	Path string
	// Size is the length in bytes, including the four bytes of the length field.
	Size int
}

// opConnect and opPing are the operations that an empty Match.Op leaves out.
const (
	opConnect = "connect"
	opPing    = "ping"
	opEvent   = "notification"
)

// parseRequest reads what a rule may ask about. A request that cannot be read
// gives what could be: judging it is the server's business.
func parseRequest(frame []byte) (xid int32, op, path string) {
	r := jute.NewReader(frame)
	var h wire.RequestHeader
	h.Decode(r)
	switch h.Op {
	case wire.OpMulti, wire.OpMultiRead:
		r.Int32() // the header of the first operation: its code,
		r.Bool()  // whether it is the last,
		r.Int32() // and an error
		path = r.String()
	case wire.OpAuth, wire.OpSetWatches, wire.OpSetWatches2, wire.OpSASL, wire.OpReconfig:
	default:
		path = r.String()
	}
	if r.Err() != nil {
		path = ""
	}
	return h.Xid, h.Op.String(), path
}

// multiDeletes reports whether a multi deletes a znode whose path begins with prefix.
func multiDeletes(frame []byte, prefix string) bool {
	r := jute.NewReader(frame)
	var h wire.RequestHeader
	h.Decode(r)
	var multi wire.MultiRequest
	multi.Decode(r)
	return slices.ContainsFunc(multi.Ops, func(o wire.MultiOp) bool {
		d, ok := o.Req.(*wire.DeleteRequest)
		return ok && strings.HasPrefix(d.Path, prefix)
	})
}

// parseReply reads the xid of a reply, and of an event the path.
func parseReply(frame []byte) (xid int32, path string) {
	r := jute.NewReader(frame)
	var h wire.ReplyHeader
	if h.Decode(r); h.Xid == wire.XidEvent {
		var e wire.WatcherEvent
		e.Decode(r)
		path = e.Path
	}
	return h.Xid, path
}
