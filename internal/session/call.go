package session

import "github.com/zklock/zklock/internal/wire"

// Call is one request. The submitter fills Op and does not touch the call until the
// core returns it in a notice. Then the call may be used again. For old servers, the core
// replaces the code of a create2.
type Call struct {
	Op     Op
	Result Result
	// Done is for the driver, which it saves a lookup. The core never calls it.
	Done func()

	state      callState
	batchable  bool    // the call may be sent in a batch, or is a batch
	refused    bool    // the server did not execute it, or it only reads; see unknownRequest
	members    []*Call // of a batch: its calls
	xid        int32
	prev, next *Call
}

// callState is the progress of a call.
type callState uint8

const (
	idle   callState = iota // owned by the submitter
	queued                  // not yet encoded
	sent                    // encoded, waiting for its answer
)

// Reset prepares c for another request. The call must not be queued or sent.
func (c *Call) Reset() {
	c.Op = Op{}
	c.Result.reset()
	c.state, c.refused = idle, false
}

// callList is a doubly linked queue of calls. A call is in at most one list. Because
// the calls themselves are linked, push and remove neither allocate nor search.
type callList struct {
	first, last *Call
	n           int
	unbatchable int // how many of them are not batchable
}

// push appends c.
func (l *callList) push(c *Call) {
	c.prev, c.next = l.last, nil
	if l.last == nil {
		l.first = c
	} else {
		l.last.next = c
	}
	l.last = c
	l.n++
	if !c.batchable {
		l.unbatchable++
	}
}

// pop removes and returns the first call, or nil if the list is empty.
func (l *callList) pop() *Call {
	c := l.first
	if c != nil {
		l.remove(c)
	}
	return c
}

// remove removes c, which must be in the list.
func (l *callList) remove(c *Call) {
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	l.n--
	if !c.batchable {
		l.unbatchable--
	}
}

// find returns the call with this number, or nil.
func (l *callList) find(xid int32) *Call {
	c := l.first
	for c != nil && c.xid != xid {
		c = c.next
	}
	return c
}

// has reports whether a call with this code is in the list.
func (l *callList) has(code wire.OpCode) bool {
	for c := l.first; c != nil; c = c.next {
		if c.Op.Code == code {
			return true
		}
	}
	return false
}
