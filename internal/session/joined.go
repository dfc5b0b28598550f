package session

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// joinedCode is the code of an operation in a joined request. All servers know
// the older ones there.
func joinedCode(code wire.OpCode) wire.OpCode {
	switch code {
	case wire.OpCreate2:
		return wire.OpCreate
	case wire.OpGetChildren2:
		return wire.OpGetChildren
	}
	return code
}

// appendJoined appends a framed request with the operations of all members.
func appendJoined(b []byte, batch *Call) []byte {
	b, start := wire.BeginFrame(b)
	h := wire.RequestHeader{Xid: batch.xid, Op: batch.Op.Code}
	b = h.Append(b)
	for _, call := range batch.members {
		for i := range call.Op.parts() {
			o := call.Op.part(i)
			b = appendMultiHeader(b, joinedCode(o.Code), false)
			b = o.appendTo(b)
		}
	}
	return wire.EndFrame(appendMultiHeader(b, wire.OpError, true), start)
}

// decodeJoined reads the results of the members' operations into the members. If
// one of a multi's failed, the batch's own result says which, counted over all.
func decodeJoined(r *jute.Reader, batch *Call) {
	whole, n, anyFailed := &batch.Result, 0, false
	for _, call := range batch.members {
		res := &call.Result
		res.Sub = res.Sub[:0]
		for i := range call.Op.parts() {
			op, done, code := wire.OpCode(r.Int32()), r.Bool(), wire.ErrCode(r.Int32())
			if done {
				r.Failf("%d results for more operations", n)
			}
			var sub SubResult
			if r.Err() == nil {
				o := call.Op.part(i)
				decodeSub(r, o, joinedCode(o.Code), op, code, &sub)
			}
			if r.Err() != nil {
				return
			}
			anyFailed = anyFailed || sub.failed
			if sub.Code != wire.ErrOK && whole.Code == wire.ErrOK && batch.Op.Code == wire.OpMulti {
				whole.Code, whole.Failed, whole.told = sub.Code, n, true
			}
			if call.Op.Code == wire.OpMulti {
				res.Sub = append(res.Sub, sub)
			} else {
				res.Code, res.Path, res.Strings = sub.Code, sub.Path, sub.Children
			}
			n++
		}
	}
	if _, done, _ := r.Int32(), r.Bool(), r.Int32(); !done {
		r.Failf("more results than the %d operations", n)
	}
	if anyFailed && whole.Code == wire.ErrOK && batch.Op.Code == wire.OpMulti {
		r.Failf("failures without a code in a multi")
	}
}

// joinedAnswer tells each of the calls in a batch what became of it.
func (c *Core) joinedAnswer(batch *Call) {
	whole := &batch.Result
	if batch.Op.Code == wire.OpMultiRead && whole.Code == wire.ErrUnimplemented {
		c.noMultiRead = true // a server before 3.6: it is not asked again
	}
	at := 0
	for _, call := range batch.members {
		r := &call.Result
		r.Zxid, r.Received = whole.Zxid, whole.Received
		switch {
		case whole.Code != wire.ErrOK:
			call.shareFailure(whole, at)
		case r.Code != wire.ErrOK: // of a read, which is no other's fault
			r.Applied = outcomeOf(r.Code)
		default:
			r.Applied = Yes
			if call.Op.Code == wire.OpCreate2 {
				r.Stat = c.statOf(&call.Op, whole.Zxid)
			}
		}
		at += call.Op.parts()
		c.finishCall(call)
	}
	c.joiner.recycle(batch)
}

// shareFailure fails a call in a batch that was not done, of whose operations the
// first has this index.
func (c *Call) shareFailure(whole *Result, at int) {
	r, failed := &c.Result, whole.Failed-at
	inside := failed >= 0 && failed < c.Op.parts()
	r.Code, r.Applied, r.Path = whole.Code, whole.Applied, ""
	switch {
	case !whole.told && !undoes(whole.Code): // of the session or the server, and of all
	case !whole.told || !inside:
		r.Code, r.Applied, r.Sub = wire.ErrRuntimeInconsistency, No, r.Sub[:0]
	case c.Op.Code == wire.OpMulti:
		r.Failed = failed
		for i := range r.Sub {
			if i != failed {
				r.Sub[i] = SubResult{Code: wire.ErrRuntimeInconsistency, failed: true}
			}
		}
	}
}

// undoes reports whether a code that stands for a whole request may be the fault
// of one of its operations: then each is to be tried by itself. The others are
// about the session or the server, and would be no different for one.
func undoes(code wire.ErrCode) bool {
	switch code {
	case wire.ErrOK, wire.ErrSessionExpired, wire.ErrUnknownSession, wire.ErrSessionMoved,
		wire.ErrNotReadOnly, wire.ErrThrottled, wire.ErrAuthFailed, wire.ErrSessionClosedRequireSASL:
		return false
	}
	return outcomeOf(code) == No
}

// statOf is what is known of a znode that a multi has just made.
func (c *Core) statOf(o *Op, zxid int64) wire.Stat {
	s := wire.Stat{Czxid: zxid, Mzxid: zxid, Pzxid: zxid, DataLength: int32(len(o.Data))}
	if o.Mode.Ephemeral() {
		s.EphemeralOwner = c.sessionID
	}
	return s
}

// failBatch fails each of the calls in a batch.
func (c *Core) failBatch(batch *Call, fault error, applied Outcome) {
	for _, call := range batch.members {
		c.failCall(call, fault, applied)
	}
	c.joiner.recycle(batch)
}
