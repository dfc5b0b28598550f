package sim

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// conn is a connection: both ends and the bytes in flight. Each end learns of the close of
// the other end only from what arrives. Bytes that were sent before may arrive long after.
type conn struct {
	id      tree.ConnID
	machine *machine
	client  *client
	gen     uint64
	life    int // of the server
	arrival [2]time.Duration
	broken  [2]bool // bytes in flight are lost, by direction

	// The client's end.
	closed        bool   // the client has closed the connection
	rx            []byte // arrived and not read yet
	ended         error  // the end of the connection after rx, or nil
	reading       bool   // a read is scheduled
	passwordKnown bool   // the handshake was answered

	// The server's end.
	gone          bool // the server has closed the connection, or does not know it
	handshakeRead bool
	partial       []byte // of a frame

	// The follower in between, while it is cut off. If around is set, the connection uses
	// another follower.
	around    bool
	heldUp    [][]byte
	heldDown  []byte
	heldEnd   bool
	holdsBack bool          // the follower has held messages
	givenUp   time.Duration // when the client gave up the request for its session, or 0

	loseAnswer bool // the next answer is lost
	requested  bool // the request for a session was passed on
	answered   bool // the request for a session was answered
}

var (
	errReset   = errors.New("sim: connection reset")
	errEOF     = errors.New("sim: end of stream")
	errRefused = errors.New("sim: connection refused")
)

// write sends the client's bytes, sometimes in two pieces.
func (c *conn) write(b []byte) {
	w := c.machine.world
	for len(b) > 0 {
		n := w.piece(&c.machine.link, len(b))
		piece := append([]byte(nil), b[:n]...)
		b = b[n:]
		w.transit(c, up, func() {
			if !c.broken[up] {
				c.atServer(piece)
			}
		})
	}
}

// atServer handles bytes that arrive at the server's machine. If the server process does
// not know the connection, the kernel answers with a reset.
func (c *conn) atServer(b []byte) {
	s := c.machine.world.server
	if c.gone || c.life != s.life || !s.up {
		if s.up {
			c.hangUp(errReset)
		}
		return
	}
	c.partial = append(c.partial, b...)
	for {
		frame, rest := cutFrame(c.partial)
		if frame == nil || c.broken[up] {
			return // the bytes after a lost request are lost too
		}
		c.partial = rest
		c.pass(frame)
	}
}

// cutFrame splits a complete frame with its length from b. It returns nil if there is none.
func cutFrame(b []byte) (frame, rest []byte) {
	if len(b) < 4 {
		return nil, b
	}
	n := 4 + int(binary.BigEndian.Uint32(b))
	if len(b) < n {
		return nil, b
	}
	return b[:n:n], b[n:]
}

// pass passes a request to the server, unless the follower holds it back.
func (c *conn) pass(frame []byte) {
	w := c.machine.world
	xid, op := requestHeader(frame)
	if !c.isCutOff() {
		if !c.requested {
			op = wire.OpCreateSession // this request has no header
		}
		c.requested = true
		if !c.machine.lose(c, op, frame) {
			w.server.receive(c, frame[4:])
		}
		return
	}
	switch {
	case xid == int32(wire.XidPing):
		c.toClient(wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidPing}, nil), false)
	default:
		c.heldUp = append(c.heldUp, frame)
		c.keepBack()
	}
}

// isCutOff reports whether the connection's follower is cut off.
func (c *conn) isCutOff() bool { return !c.around && c.machine.world.isCutOff(&c.machine.link) }

// keepBack notes that the follower has held messages of the connection.
func (c *conn) keepBack() {
	if !c.holdsBack {
		c.holdsBack = true
		c.machine.held = append(c.machine.held, c)
	}
}

// fromServer handles bytes that the server sends. The request is applied and durable, so
// that a cut loses only the answer.
func (c *conn) fromServer(b []byte, end bool) {
	if c.loseAnswer {
		c.cut(true, c.machine.world.oneIn(2))
		return
	}
	// Before the answer to the handshake, the client could read garbage as that answer, and
	// as the end of the session.
	if c.machine.garbage != 0 && c.answered {
		b = append(garbage(c.machine.garbage), b...)
		c.machine.garbage = 0
		c.machine.world.note("%s: garbage", c.client.name)
	}
	c.answered = true
	if c.isCutOff() {
		c.heldDown = append(c.heldDown, b...)
		c.heldEnd = c.heldEnd || end
		c.keepBack()
		return
	}
	c.toClient(b, end)
}

// rejoin ends the follower's time without a leader. If dropped is set, the follower has
// closed its connections to clients.
func (c *conn) rejoin(dropped bool) {
	// The answers from before the cut come first.
	heldUp, heldDown := c.heldUp, c.heldDown
	c.heldUp, c.heldDown = nil, nil
	if c.broken[up] && c.broken[down] || c.gone && len(heldDown) == 0 && !c.heldEnd {
		return
	}
	if dropped {
		c.broken[up], c.broken[down] = true, true
		c.machine.world.after(0, func() { c.endAtClient(errEOF) })
		c.machine.world.server.receiveEnd(c)
		return
	}
	if len(heldDown) > 0 || c.heldEnd {
		c.toClient(heldDown, c.heldEnd)
	}
	for _, f := range heldUp {
		if !c.gone && !c.broken[up] {
			c.pass(f)
		}
	}
}

// toClient sends b to the client, sometimes in two pieces.
func (c *conn) toClient(b []byte, end bool) {
	w := c.machine.world
	for len(b) > 0 {
		n := w.piece(&c.machine.link, len(b))
		piece := b[:n:n]
		b = b[n:]
		w.transit(c, down, func() {
			if !c.broken[down] {
				c.atClient(piece)
			}
		})
	}
	if end {
		c.hangUp(errEOF)
	}
}

// hangUp ends the connection for the client, after the bytes in flight.
func (c *conn) hangUp(err error) {
	c.machine.world.transit(c, down, func() {
		if !c.broken[down] {
			c.endAtClient(err)
		}
	})
}

// atClient handles bytes that arrive at the client's machine.
func (c *conn) atClient(b []byte) {
	if c.closed || !c.client.alive || c.ended != nil {
		return
	}
	c.rx = append(c.rx, b...)
	c.planRead()
}

// endAtClient handles the end of the connection at the client's machine.
func (c *conn) endAtClient(err error) {
	if c.closed || !c.client.alive || c.ended != nil {
		return
	}
	c.ended = err
	c.planRead()
}

// planRead wakes the client's reader. The reader gets all bytes that arrive until it runs.
func (c *conn) planRead() {
	if !c.reading {
		c.reading = true
		c.client.run(netWork, func() { c.client.read(c) })
	}
}

// close closes the client's end. Requests that were sent before still arrive, and the
// server may apply them.
func (c *conn) close() {
	if c.closed {
		return
	}
	c.closed = true
	c.machine.world.transit(c, up, func() {
		if !c.broken[up] {
			c.machine.world.server.receiveEnd(c)
		}
	})
}

// cut breaks the connection and loses all bytes in flight. A side that does not learn of
// the cut notices only silence.
func (c *conn) cut(clientKnows, serverKnows bool) {
	w := c.machine.world
	c.broken[up], c.broken[down] = true, true
	if clientKnows {
		w.after(w.upTo(c.machine.link.spread), func() { c.endAtClient(errReset) })
	}
	if serverKnows {
		w.after(w.upTo(c.machine.link.spread), func() { w.server.receiveEnd(c) })
	}
}
