package zk

import "time"

// Result is the answer to one operation. Which fields are set depends on the
// operation; the others are zero.
type Result struct {
	// Err is nil if the operation succeeded, else an *[Error].
	Err error
	// Zxid is the zxid in the answer's header: for a change its own, for a
	// read the last one that the answering server had applied. Zero if there
	// was no answer.
	Zxid int64
	// Path is the path that a create made, with the sequence number if any.
	// It is relative to the client's chroot.
	Path string
	// Stat is set by create, exists, get, set, children and get of an ACL. A create inside a
	// multi has none, except of containers and znodes with a TTL.
	Stat Stat
	// Data is what get read: nil and empty are told apart, as the server does.
	// It belongs to the receiver.
	Data []byte
	// Children are the names that children read, in no particular order.
	Children []string
	// ACL is the list that a get of an ACL read.
	ACL []ACL
	// Results has one element an operation of a multi. If one failed, its Err
	// says why, and the others' Err is [ErrRolledBack].
	Results []Result
	// Sent is when the request was encoded for the connection on which it went
	// out, never later than its write. Received is when its answer was read.
	// Both mean something only if Conn is not 0, and Received only if there
	// was an answer. They count from an arbitrary moment in this
	// process and go on while the machine is suspended.
	Sent, Received time.Duration
	// Conn is the connection on which the request went out: connections of one
	// client are counted from 1 at each successful handshake. Zero if never sent.
	Conn uint64
}
