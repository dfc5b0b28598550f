package tree

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// unknownZxid stands in the header of the answer to an unknown request: Java
// answers before it looks anything up.
const unknownZxid = -1

// Request handles one frame, without its length, of a connection that Connect
// accepted; frames of others are ignored, such as what a client had under way
// when it was closed. It answers everything it gets, in order, events first, but
// a frame that is too long or too short for a header, which closes the
// connection. The frame is not kept. As in Java, bytes behind a request's record
// are ignored.
//
// If it reports that there is more, the request took its share of time and is not
// answered. Requests of other connections may come first, but before the next one of
// this connection [Tree.Continue] has to report that it is done.
func (t *Tree) Request(id ConnID, frame []byte, now Now, out *Out) (more bool) {
	c, ok := t.conns[id]
	if !ok || c.session.ending() {
		return false
	}
	t.begin(now)
	defer t.closeBehind(out)
	r := &t.in
	r.Reset(frame)
	defer r.Reset(nil) // the frame is not kept
	var h wire.RequestHeader
	if h.Decode(r); r.Err() != nil || len(frame) > t.cfg.MaxFrame {
		t.drop(c, out)
		return false
	}
	if h.Op != wire.OpAuth && h.Op != wire.OpSASL && !t.admitted(c) {
		t.refuse(c, h.Xid, wire.ErrSessionClosedRequireSASL, nil, out)
		return false
	}
	// Whatever it is, and whether or not it goes well, the client lives.
	t.touch(c.session, now)
	if t.readOnly && t.refusedReadOnly(c, h.Op) {
		t.reply(c, h.Xid, wire.ErrNotReadOnly, nil, out)
		return false
	}
	switch h.Op {
	case wire.OpPing:
		// Whatever xid it came with.
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
		return t.restoring[c] != nil
	default:
		if isWrite(h.Op) {
			rec, err := t.write(c, h.Op, r, now, out)
			t.answer(c, h.Xid, err, rec, out)
			return false
		}
		rec, err := t.read(c, h.Op, r)
		if err == errUnknown {
			out.frame(c, wire.AppendReply(nil, wire.ReplyHeader{Xid: h.Xid, Zxid: unknownZxid, Err: wire.ErrUnimplemented}, nil))
			t.drop(c, out)
			return false
		}
		if t.takeRefusal() {
			err = wire.ErrQuotaExceeded
		}
		t.reply(c, h.Xid, err, rec, out)
	}
	return false
}

// errUnknown is read's word for a request that does not exist. It is no code of
// the protocol's.
const errUnknown wire.ErrCode = 1

// read answers what changes no state but the connection's watches. It takes no
// transaction id and leaves no record.
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
	// Also a check outside a multi, which brings a 3.8.0 down, and what servers
	// say among themselves: createSession, deleteContainer.
	return nil, errUnknown
}

// reply is answer for what changed nothing: where that gets too long, an error says
// so instead. Of a write it would say that it was not done.
func (t *Tree) reply(c *conn, xid int32, err wire.ErrCode, rec wire.Record, out *Out) {
	if err == wire.ErrOK && replyCost(rec) > t.cfg.MaxReply {
		t.tallies.RefusedReplies++
		err = wire.ErrQuotaExceeded
	}
	t.answer(c, xid, err, rec, out)
}

// answer answers with the last transaction's id in the header; an answer with an
// error has no body. For a write that id is its own. For a read it is what the
// client has seen with it: no server that knows less may take the client on.
func (t *Tree) answer(c *conn, xid int32, err wire.ErrCode, rec wire.Record, out *Out) {
	if err != wire.ErrOK {
		rec = nil
	}
	h := wire.ReplyHeader{Xid: xid, Zxid: t.zxid, Err: err}
	out.frame(c, wire.AppendReply(make([]byte, 0, replySize(rec)), h, rec))
}

// replyCost is what an answer counts against Config.MaxReply.
func replyCost(rec wire.Record) int {
	cost := replySize(rec)
	if p, ok := rec.(*childrenResponse); ok && p.of.more != nil {
		cost += listedCost * int(p.of.more.children)
	}
	return cost
}

// replySize is about how long the frame of an answer gets: enough for one
// allocation in the cases that are long or frequent.
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
	case *wire.GetACLResponse:
		return header + stat + int(aclCost(p.ACL))
	}
	return header + stat
}

// childrenSize is how long a list of names gets. It may be longer than what a
// client takes as a frame; like Java, the server sends it nevertheless, up to
// Config.MaxReply.
func childrenSize(names []string) int {
	size := 4
	for _, n := range names {
		size += 4 + len(n)
	}
	return size
}
