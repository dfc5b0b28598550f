package session

import (
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Result is the answer to a call. Which fields an operation sets is its own.
type Result struct {
	// Code is the server's answer; wire.ErrOK also where there was none.
	Code wire.ErrCode
	// Fault is why there is no answer: one of this package's errors.
	Fault error
	// Applied says what is known of the request if it failed.
	Applied Outcome
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
	// Sub is one result an operation of a multi. It is used again by the
	// next call that this Call makes.
	Sub []SubResult
	// Sent is the time given when the request was encoded, Received that of
	// the answer's frame. Both are zero if it did not happen.
	Sent, Received time.Duration
	// Conn is the number of the connection it went out on, from 1.
	Conn uint64

	told bool // of a batch: Failed is what the answer told
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

// Err is nil for success, else Fault or the server's code.
func (r *Result) Err() error {
	if r.Fault != nil {
		return r.Fault
	}
	if r.Code != wire.ErrOK {
		return r.Code
	}
	return nil
}

// reset makes r ready for another call and keeps its room.
func (r *Result) reset() {
	sub := r.Sub
	clear(sub)
	*r = Result{Sub: sub[:0]}
}

// Outcome says whether a request was applied.
type Outcome uint8

// What can be known.
const (
	Unknown Outcome = iota // sent, and no answer that settles it
	No                     // not applied, and it never will be
	Yes
)

// outcomeOf is what an answer's code tells. The system's own errors are no
// proof that nothing was written, except where the request was not understood.
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
	case wire.OpGetData:
		res.Data = cloneBuffer(r.Buffer())
		res.Stat.Decode(r)
	case wire.OpGetACL:
		var a wire.GetACLResponse
		a.Decode(r)
		res.ACL, res.Stat = a.ACL, a.Stat
	case wire.OpGetChildren, wire.OpGetEphemerals:
		res.Strings = r.Strings()
	case wire.OpGetChildren2:
		res.Strings = r.Strings()
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

// decodePath reads a string that mostly equals want, and then allocates nothing.
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

// cloneBuffer copies what aliases a frame; nil stays nil and empty stays empty.
func cloneBuffer(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// forget drops what a broken answer left, and keeps what was known before it.
func (c *Call) forget() {
	r := &c.Result
	sentAt, conn := r.Sent, r.Conn
	r.reset()
	r.Sent, r.Conn = sentAt, conn
	for _, member := range c.members {
		member.forget()
	}
}
