package tree

import "time"

// ConnID identifies a connection. The caller chooses it, and uses each ID once in the
// life of a Tree.
type ConnID int64

// Now is the time of a call on the caller's clocks.
type Now struct {
	// Wall is the wall clock in milliseconds since 1970. It determines the ctime and
	// mtime of nodes, the expiry of TTL nodes, and the start of session IDs. Nothing
	// else depends on it.
	Wall int64
	// Mono is a clock that never decreases, from an arbitrary start. Sessions expire
	// by it.
	Mono time.Duration
}

// Out collects the output of calls. The zero value is ready to use.
type Out struct {
	// Records must be durable, in their order, before any of Sends leaves. Each is a
	// separate buffer that the Tree does not keep. Its length is at most twice that
	// of the longest permitted request, see Config.MaxFrame.
	Records [][]byte
	// Sends must be carried out in their order. The frames of one connection are in
	// the order in which the client must see them.
	Sends []Send
}

// Send is a frame for one connection, a request to close it, or both.
type Send struct {
	Conn ConnID
	// Frame is a complete message with its length; nil means that there is only
	// Close. Several Sends may share one Frame: do not modify it.
	Frame []byte
	// Close says that the connection is to be closed after Frame is sent. The Tree
	// has already removed it; a Disconnect for it does no harm.
	Close bool
}

// Reset empties o and keeps its memory. The buffers in Records and Sends may still be
// in use elsewhere.
func (o *Out) Reset() {
	clear(o.Records)
	clear(o.Sends)
	o.Records, o.Sends = o.Records[:0], o.Sends[:0]
}

// frame adds a message for c.
func (o *Out) frame(c *conn, frame []byte) {
	o.Sends = append(o.Sends, Send{Conn: c.id, Frame: frame})
}

// record adds a record. It precedes the frames that depend on it. So a caller that
// stops between two calls has recorded everything that it may send.
func (o *Out) record(rec []byte) {
	o.Records = append(o.Records, rec)
}
