package tree

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// unknownZxid is the zxid in the answer to an unknown request, as in Java.
const unknownZxid = -1

// Request handles one frame, without its length, of a connection that Connect
// accepted. Frames of other connections are ignored, such as those in flight when the
// connection was closed. Request answers every frame, in order, after its events.
// Only a frame that is too long, or too short for a header, is not answered and
// closes the connection. Request does not keep the frame. As in Java, bytes after a
// request's record are ignored.
//
// If Request returns more, the request has used its share of time and is not answered
// yet. Requests of other connections may come first. Before the next request of this
// connection, [Tree.Continue] must have reported that this one is done.
func (t *Tree) Request(id ConnID, frame []byte, now Now, out *Out) (more bool) {
	c, ok := t.conns[id]
	if !ok || c.session.ending() {
		return false
	}
	t.beginCall(now)
	defer t.closeOverflowed(out)
	r := &t.in
	r.Reset(frame)
	defer r.Reset(nil) // the frame is not kept
	var h wire.RequestHeader
	if h.Decode(r); r.Err() != nil || len(frame) > t.cfg.MaxFrame {
		t.drop(c, out)
		return false
	}
	if h.Op != wire.OpAuth && h.Op != wire.OpSASL && !t.hasRequiredIdentity(c) {
		t.refuse(c, h.Xid, wire.ErrSessionClosedRequireSASL, nil, out)
		return false
	}
	// Every request, whether it succeeds or not, proves that the client lives.
	t.touch(c.session, now)
	if t.readOnly && t.refusedReadOnly(c, h.Op) {
		t.reply(c, h.Xid, wire.ErrNotReadOnly, nil, out)
		return false
	}
	switch h.Op {
	case wire.OpPing:
		// The answer ignores the xid of the request.
		t.reply(c, wire.XidPing, wire.ErrOK, nil, out)
	case wire.OpAuth:
		t.authenticate(c, h, r, out)
	case wire.OpSASL:
		t.saslStep(c, h, r, out)
	case wire.OpCloseSession:
		if s := c.session; !t.endSession(s, now, out) {
			s.owned.closer, s.owned.closeXid = c, h.Xid
			return false
		}
		t.reply(c, h.Xid, wire.ErrOK, nil, out)
		t.drop(c, out)
	case wire.OpSetWatches, wire.OpSetWatches2:
		t.setWatches(c, h, r, out)
		return t.watchRestores[c] != nil
	default:
		if isWrite(h.Op) {
			rec, err := t.write(c, h.Op, r, now, out)
			t.answer(c, h.Xid, err, rec, out)
			return false
		}
		rec, err := t.read(c, h.Op, r)
		if err == errUnknownOp {
			out.frame(c, wire.AppendReply(nil, wire.ReplyHeader{Xid: h.Xid, Zxid: unknownZxid, Err: wire.ErrUnimplemented}, nil))
			t.drop(c, out)
			return false
		}
		if t.takeWatchRefusal() {
			err = wire.ErrQuotaExceeded
		}
		if !t.hasBuffer(rec) {
			t.wanted = replySize(rec)
			return false
		}
		t.reply(c, h.Xid, err, rec, out)
	}
	return false
}

// TakeWantedBuffer returns the size of the buffer without which the last Request did nothing,
// or 0. The caller makes a buffer of that capacity, calls LendBuffer, and repeats the request,
// which may then want a larger one.
func (t *Tree) TakeWantedBuffer() int {
	size := t.wanted
	t.wanted = 0
	return size
}

// LendBuffer provides the buffer for the answer to the next request, or takes it back with
// nil. The Tree itself would allocate it in the call that answers, which takes long: if the
// garbage collector runs, an allocation of tens of megabytes has to help it for as many
// milliseconds as the heap has hundreds of megabytes.
func (t *Tree) LendBuffer(b []byte) { t.lent = b }

// hasBuffer reports whether there is a buffer for the answer, or it needs none. If not, the
// request must have no effect.
func (t *Tree) hasBuffer(rec wire.Record) bool {
	size, long := replySize(rec), t.cfg.LongReply
	return long < 1 || size < long || size <= cap(t.lent) || replyCost(rec) > t.cfg.MaxReply
}

// buffer returns a buffer for an answer.
func (t *Tree) buffer(size int) []byte {
	b := t.lent
	if len(b) > 0 || size < t.cfg.LongReply || size > cap(b) {
		return make([]byte, 0, size)
	}
	t.lent = nil
	return b
}

// errUnknownOp is returned by read for an unknown operation. It is not a code of the
// protocol.
const errUnknownOp wire.ErrCode = 1

// read executes an operation that changes nothing except the watches of the
// connection. It uses no transaction id and writes no record.
func (t *Tree) read(c *conn, op wire.OpCode, r *jute.Reader) (wire.Record, wire.ErrCode) {
	switch op {
	case wire.OpExists:
		return t.exists(c, r)
	case wire.OpGetData:
		return t.getData(c, r)
	case wire.OpGetACL:
		return t.getACL(c, r)
	case wire.OpGetChildren:
		return t.getChildren(c, r)
	case wire.OpGetChildren2:
		return t.getChildren2(c, r)
	case wire.OpGetAllChildrenNumber:
		return t.allChildrenNumber(c, r)
	case wire.OpGetEphemerals:
		return t.getEphemerals(c, r)
	case wire.OpSync:
		var q wire.SyncRequest
		if q.Decode(r); r.Err() != nil {
			return nil, wire.ErrMarshalling
		}
		return &wire.SyncResponse{Path: q.Path}, wire.ErrOK
	case wire.OpMultiRead:
		return t.multiRead(c, r)
	case wire.OpAddWatch:
		return t.addWatchOp(c, r)
	case wire.OpCheckWatches:
		return t.checkWatches(c, r)
	case wire.OpRemoveWatches:
		return t.removeWatches(c, r)
	case wire.OpWhoAmI:
		return whoAmI(c), wire.ErrOK
	}
	// This includes a check outside a multi, as in 3.9.3 and later, and the
	// internal operations of servers: createSession and deleteContainer.
	return nil, errUnknownOp
}

// reply is answer for an operation that changed nothing. If the answer is too long,
// it sends an error instead. For a write, such an error would claim that the write
// was not done.
func (t *Tree) reply(c *conn, xid int32, err wire.ErrCode, rec wire.Record, out *Out) {
	if err == wire.ErrOK && replyCost(rec) > t.cfg.MaxReply {
		t.counters.RefusedReplies++
		err = wire.ErrQuotaExceeded
	}
	t.answer(c, xid, err, rec, out)
}

// answer sends an answer with the last transaction's ID in the header. An answer with
// an error has no body. For a write, the ID is the write's own. For a read, the
// client has then seen the state up to that ID: no server with an older state may
// serve the client.
func (t *Tree) answer(c *conn, xid int32, err wire.ErrCode, rec wire.Record, out *Out) {
	if err != wire.ErrOK {
		rec = nil
	}
	h := wire.ReplyHeader{Xid: xid, Zxid: t.zxid, Err: err}
	out.frame(c, wire.AppendReply(t.buffer(replySize(rec)), h, rec))
}

// replyCost returns how much an answer counts against Config.MaxReply.
func replyCost(rec wire.Record) int {
	cost := replySize(rec)
	if p, ok := rec.(*childrenResponse); ok && p.of.extra != nil {
		cost += listedCost * int(p.of.extra.children)
	}
	return cost
}

// replySize estimates the length of an answer's frame, so that one allocation
// suffices for long and for frequent answers.
func replySize(rec wire.Record) int {
	const header, stat = 20, 80
	switch p := rec.(type) {
	case nil:
		return header
	case *dataResponse:
		return header + 4 + len(p.data) + stat
	case *childrenResponse:
		return header + p.size() + stat
	case *wire.CreateResponse:
		return header + 4 + len(p.Path)
	case *wire.Create2Response:
		return header + 4 + len(p.Path) + stat
	case *wire.GetEphemeralsResponse:
		return header + childrenSize(p.Ephemerals)
	case *wire.MultiResponse:
		size := header
		for i := range p.Results {
			size += replySize(p.Results[i].Resp)
		}
		return size
	case *wire.GetACLResponse:
		return header + stat + int(aclCost(p.ACL))
	}
	return header + stat
}

// childrenSize returns the encoded size of a list of names. It may exceed what a
// client accepts as a frame. Like Java, the server sends it nevertheless, up to
// Config.MaxReply.
func childrenSize(names []string) int {
	size := 4
	for _, n := range names {
		size += 4 + len(n)
	}
	return size
}
