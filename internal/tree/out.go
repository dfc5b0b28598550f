package tree

import "time"

// ConnID names a connection. The caller chooses it and never uses one twice in
// the life of a Tree.
type ConnID int64

// Now is the time as the caller's clocks show it when a call is made.
type Now struct {
	// Wall is the wall clock in milliseconds since 1970. It gives nodes their
	// ctime and mtime, TTL nodes their end and session ids their beginning;
	// nothing else rests on it.
	Wall int64
	// Mono is a clock that never goes back, since whatever moment the caller
	// likes. Sessions expire by it.
	Mono time.Duration
}

// Out collects what calls have to say to the outside. The zero value is ready.
type Out struct {
	// Records are to be durable, in their order, before any of Sends leaves.
	// Each is a buffer of its own that the Tree does not keep, no longer than
	// twice the longest request that was ever let in, see Config.MaxFrame.
	Records [][]byte
	// Sends are to be done in their order. All frames of one connection are in
	// the order the client must see.
	Sends []Send
}

// Send is a frame for one connection, the order to close it, or both.
type Send struct {
	Conn ConnID
	// Frame is a whole message with its length in front; nil means there is
	// only Close. Several Sends may share one Frame: do not write to it.
	Frame []byte
	// Close says that the connection is over once Frame is out. The Tree has
	// forgotten it already; a Disconnect for it does no harm.
	Close bool
}

// Reset empties o and keeps its room. What Records and Sends referred to may
// still be in use elsewhere.
func (o *Out) Reset() {
	clear(o.Records)
	clear(o.Sends)
	o.Records, o.Sends = o.Records[:0], o.Sends[:0]
}

// frame adds a message for c.
func (o *Out) frame(c *conn, frame []byte) {
	o.Sends = append(o.Sends, Send{Conn: c.id, Frame: frame})
}

// record adds a record. It comes before the frames that tell of it, so a caller
// that stops between two calls has recorded all that it may send.
func (o *Out) record(rec []byte) {
	o.Records = append(o.Records, rec)
}
