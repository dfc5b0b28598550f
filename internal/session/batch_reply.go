package session

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// batchCode returns the code of an operation inside a batch. All servers know the
// older codes there.
func batchCode(code wire.OpCode) wire.OpCode {
	switch code {
	case wire.OpCreate2:
		return wire.OpCreate
	case wire.OpGetChildren2:
		return wire.OpGetChildren
	}
	return code
}

// appendBatch appends a framed request with the operations of all members.
func appendBatch(b []byte, batch *Call) []byte {
	b, start := wire.BeginFrame(b)
	h := wire.RequestHeader{Xid: batch.xid, Op: batch.Op.Code}
	b = h.Append(b)
	for _, call := range batch.members {
		for i := range call.Op.opCount() {
			o := call.Op.opAt(i)
			b = appendMultiHeader(b, batchCode(o.Code), false)
			b = o.appendTo(b)
		}
	}
	return wire.EndFrame(appendMultiHeader(b, wire.OpError, true), start)
}

// decodeBatch reads the results of the operations into the members. If an operation
// of a multi failed, the result of the batch has its code and its index among all
// operations.
func decodeBatch(r *jute.Reader, batch *Call) {
	whole, n, anyFailed := &batch.Result, 0, false
	for _, call := range batch.members {
		res := &call.Result
		res.Sub = res.Sub[:0]
		for i := range call.Op.opCount() {
			op, done, code := wire.OpCode(r.Int32()), r.Bool(), wire.ErrCode(r.Int32())
			if done {
				r.Failf("%d results for more operations", n)
			}
			var sub SubResult
			if r.Err() == nil {
				o := call.Op.opAt(i)
				decodeSub(r, o, batchCode(o.Code), op, code, &sub)
			}
			if r.Err() != nil {
				return
			}
			anyFailed = anyFailed || sub.failed
			if sub.Code != wire.ErrOK && whole.Code == wire.ErrOK && batch.Op.Code == wire.OpMulti {
				whole.Code, whole.Failed, whole.failedKnown = sub.Code, n, true
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
		r.Failf("failures without an error code in a multi")
	}
}

// batchAnswered completes each call of a batch.
func (c *Core) batchAnswered(batch *Call) {
	whole := &batch.Result
	at := 0
	for _, call := range batch.members {
		r := &call.Result
		r.Zxid, r.Received = whole.Zxid, whole.Received
		switch {
		case whole.Code != wire.ErrOK:
			call.failWithBatch(whole, at)
		case r.Code != wire.ErrOK: // a failed read does not fail the others
			r.Applied = outcomeOf(r.Code)
		default:
			r.Applied = Yes
			if call.Op.isPlainCreate() {
				r.Stat = c.createdStat(&call.Op, whole.Zxid)
			}
		}
		at += call.Op.opCount()
		c.finishCall(call)
	}
	c.batcher.recycle(batch)
}

// failWithBatch fails a call of a batch that was not executed. at is the index of its
// first operation in the batch.
func (c *Call) failWithBatch(whole *Result, at int) {
	r, failed := &c.Result, whole.Failed-at
	inside := failed >= 0 && failed < c.Op.opCount()
	r.Code, r.Applied, r.Path = whole.Code, whole.Applied, ""
	switch {
	case !whole.failedKnown && !rollsBack(whole.Code): // the failure concerns the session or the server, and so every call
	case !whole.failedKnown, !inside,
		whole.Code == wire.ErrQuotaExceeded: // perhaps because of the operations before it
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

// rollsBack reports whether an error code for a whole request may be the fault of one
// of its operations. If so, the submitter has to try each call by itself. The other
// codes concern the session or the server, and would be the same for a single call.
func rollsBack(code wire.ErrCode) bool {
	switch code {
	case wire.ErrOK, wire.ErrSessionExpired, wire.ErrUnknownSession, wire.ErrSessionMoved,
		wire.ErrNotReadOnly, wire.ErrThrottled, wire.ErrAuthFailed, wire.ErrSessionClosedRequireSASL:
		return false
	}
	return outcomeOf(code) == No
}

// createdStat returns what is known of a znode that was created, if the answer has only
// its path. zxid is that of the answer's header. For a change that succeeded, it is the zxid
// of the change: a server executes changes one by one, and answers each one before the next.
func (c *Core) createdStat(o *Op, zxid int64) wire.Stat {
	s := wire.Stat{Czxid: zxid, Mzxid: zxid, Pzxid: zxid, DataLength: int32(len(o.Data))}
	if o.Mode.Ephemeral() {
		s.EphemeralOwner = c.sessionID
	}
	return s
}

// failBatch fails each call of a batch.
func (c *Core) failBatch(batch *Call, fault error, applied Outcome) {
	for _, call := range batch.members {
		c.failCall(call, fault, applied)
	}
	c.batcher.recycle(batch)
}
