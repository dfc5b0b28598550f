package session

import (
	"github.com/zklock/zklock/internal/plant"
	"github.com/zklock/zklock/internal/wire"
)

// joinedAnswer gives each of the calls in a batch its part of the answer.
func (c *Core) joinedAnswer(b *Call) {
	if b.Op.Code == wire.OpMultiRead && b.Result.Code == wire.ErrUnimplemented {
		c.noMultiRead = true // a server before 3.6: it is not asked again
	}
	from := 0
	for _, call := range b.members {
		n := call.Op.parts()
		c.share(&b.Result, from, call)
		from += n
		c.finishCall(call)
	}
	c.joiner.recycle(b)
}

// share gives a call the results from this one on.
func (c *Core) share(all *Result, from int, call *Call) {
	r, o := &call.Result, &call.Op
	r.Zxid, r.Received = all.Zxid, all.Received
	switch {
	case len(all.Sub) == 0:
		r.Code, r.Applied = all.Code, all.Applied
		if undoes(all.Code) {
			r.Code = wire.ErrRuntimeInconsistency
		}
	case all.Code == wire.ErrOK: // of a multiRead, whatever became of each
		sub := &all.Sub[from]
		r.Code, r.Applied = sub.Code, outcomeOf(sub.Code)
		r.Path, r.Strings = sub.Path, sub.Children
		if o.Code == wire.OpMulti {
			r.Path = ""
			r.Sub = append(r.Sub[:0], all.Sub[from:from+len(o.Sub)]...)
		}
		if o.Code == wire.OpCreate2 {
			r.Stat = c.statOf(o, all.Zxid)
		}
	case plant.Is(plant.SharedFailure):
		r.Code, r.Applied = all.Code, outcomeOf(all.Code)
	case all.Failed >= from && all.Failed < from+o.parts():
		r.Code, r.Applied = all.Code, outcomeOf(all.Code)
		if o.Code == wire.OpMulti {
			r.Failed = all.Failed - from
			r.Sub = append(r.Sub[:0], all.Sub[from:from+len(o.Sub)]...)
		}
	default:
		r.Code, r.Applied = wire.ErrRuntimeInconsistency, No
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
func (c *Core) failBatch(b *Call, fault error, applied Outcome) {
	for _, call := range b.members {
		c.failCall(call, fault, applied)
	}
	c.joiner.recycle(b)
}
