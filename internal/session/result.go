package session

import (
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Result is the answer to a call. Each operation sets its own fields.
type Result struct {
	// Code is the server's answer. It is wire.ErrOK also if there was no answer.
	Code wire.ErrCode
	// Fault says why there is no answer. It is one of this package's errors.
	Fault error
	// Applied says whether a failed request was applied, as far as is known.
	Applied Outcome
	// Resend: the request failed because the server did not know it, or it is a read that
	// was in flight at that time. Sent again, it takes a form that the server knows, or is
	// refused.
	Resend bool
	// Failed is the index of the operation that made a multi fail.
	Failed int
	Zxid   int64
	Path   string
	Stat   wire.Stat
	Data   []byte
	ACL    []wire.ACL
	// Strings are the children, or the paths of ephemeral znodes.
	Strings []string
	Count   int32
	Users   []wire.ClientInfo
	// Sub has one result per operation of a multi. The next use of the Call reuses
	// it.
	Sub []SubResult
	// Sent is the time when the request was encoded, and Received the time when the
	// answer was read. They are zero if that did not happen.
	Sent, Received time.Duration
	// Conn is the number of the connection that the request was sent on, from 1.
	Conn uint64

	failedKnown bool // of a batch: the answer had the value of Failed
}

// SubResult is the result of one operation of a multi.
type SubResult struct {
	Code     wire.ErrCode
	Path     string
	Stat     wire.Stat
	Data     []byte
	Children []string

	failed bool
}

// Err returns nil for success, otherwise Fault or the server's code.
func (r *Result) Err() error {
	if r.Fault != nil {
		return r.Fault
	}
	if r.Code != wire.ErrOK {
		return r.Code
	}
	return nil
}

// reset prepares r for another call and keeps its memory.
func (r *Result) reset() {
	sub := r.Sub
	clear(sub)
	*r = Result{Sub: sub[:0]}
}

// Outcome says whether a request was applied.
type Outcome uint8

// The outcomes of a request.
const (
	Unknown Outcome = iota // sent, and no answer says whether it was applied
	No                     // not applied, and it never will be
	Yes
)

// outcomeOf returns what an answer's code proves. A system error does not prove that
// nothing was written, except if the server did not understand the request.
func outcomeOf(code wire.ErrCode) Outcome {
	switch code {
	case wire.ErrOK:
		return Yes
	case wire.ErrMarshalling, wire.ErrUnimplemented, wire.ErrBadArguments,
		wire.ErrNewConfigNoQuorum, wire.ErrReconfigInProgress, wire.ErrUnknownSession:
		return No
	case wire.ErrRequestTimeout:
		return Unknown
	}
	if code < wire.ErrAPI {
		return No
	}
	return Unknown
}

// decodeResult reads the body of a successful answer to o.
func decodeResult(r *jute.Reader, o *Op, res *Result) {
	switch o.Code {
	case wire.OpCreate:
		res.Path = decodePath(r, o.Path)
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		res.Path = decodePath(r, o.Path)
		res.Stat.Decode(r)
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		res.Stat.Decode(r)
	case wire.OpGetData, wire.OpReconfig:
		res.Data = o.cloneData(r.Buffer())
		res.Stat.Decode(r)
	case wire.OpGetACL:
		var a wire.GetACLResponse
		a.Decode(r)
		res.ACL, res.Stat = a.ACL, a.Stat
	case wire.OpGetChildren, wire.OpGetEphemerals:
		res.Strings = r.Names()
	case wire.OpGetChildren2:
		res.Strings = r.Names()
		res.Stat.Decode(r)
	case wire.OpSync:
		res.Path = decodePath(r, o.Path)
	case wire.OpMulti, wire.OpMultiRead:
		decodeMulti(r, o, res)
	case wire.OpAddWatch:
		r.Int32() // an error code that is always 0
	case wire.OpGetAllChildrenNumber:
		res.Count = r.Int32()
	case wire.OpWhoAmI:
		var a wire.WhoAmIResponse
		a.Decode(r)
		res.Users = a.ClientInfo
	}
}

// decodePath reads a string that usually equals want. In that case it does not
// allocate.
func decodePath(r *jute.Reader, want string) string {
	b := r.Buffer()
	if b == nil {
		r.Failf("null instead of a path")
		return ""
	}
	if string(b) == want {
		return want
	}
	return string(b)
}

// cloneData copies data that alias a frame, up to the limit of the operation.
func (o *Op) cloneData(data []byte) []byte {
	if o.MaxData > 0 && len(data) > o.MaxData {
		data = data[:o.MaxData]
	}
	return cloneBytes(data)
}

// cloneBytes copies bytes that alias a frame. Nil stays nil and empty stays empty.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// discardAnswer drops the contents of a malformed answer and keeps what was set
// before.
func (c *Call) discardAnswer() {
	r := &c.Result
	sentAt, conn := r.Sent, r.Conn
	r.reset()
	r.Sent, r.Conn = sentAt, conn
	for _, member := range c.members {
		member.discardAnswer()
	}
}
