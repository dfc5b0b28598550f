package session

import "github.com/zklock/zklock/internal/wire"

// Call is one request on its way. Whoever submits it fills Op, leaves it alone
// until the core gives it back in a notice, and may then use it again.
type Call struct {
	Op     Op
	Result Result
	// Done is for the driver: the core never calls it. It saves a lookup.
	Done func()

	state      callState
	joins      bool    // it may be joined, or is what was joined
	members    []*Call // of a batch: the calls that were joined to it
	xid        int32
	prev, next *Call
}

// callState is how far a call has come.
type callState uint8

const (
	idle   callState = iota // the submitter's
	queued                  // not yet encoded
	sent                    // encoded, its answer awaited
)

// Reset makes c ready for another request. It must not be on its way.
func (c *Call) Reset() {
	c.Op = Op{}
	c.Result.reset()
	c.state = idle
}

// callList is a doubly linked list of calls, first in first out; a call is in
// one list at most. Linking the calls themselves makes both pushing and
// withdrawing free of allocation and of searching.
type callList struct {
	first, last *Call
	n           int
	plain       int // how many of them can't be joined
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
	if !c.joins {
		l.plain++
	}
}

// pop removes and returns the first call, nil if there is none.
func (l *callList) pop() *Call {
	c := l.first
	if c != nil {
		l.remove(c)
	}
	return c
}

// remove takes c out, which must be in the list.
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
	if !c.joins {
		l.plain--
	}
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
