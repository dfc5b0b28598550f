package sim

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// conn is one connection, both ends of it and what is under way. Its ends are
// broken apart on purpose: each learns of the other's end, if it does, by what
// arrives, and what was sent before may arrive long after.
type conn struct {
	id      tree.ConnID
	machine *machine
	client  *client
	gen     uint64
	life    int // of the server
	arrival [2]time.Duration
	broken  [2]bool // what is under way is lost

	// The client's end.
	closed  bool   // the client has closed it
	rx      []byte // has arrived and was not read
	ended   error  // has ended, after what is in rx
	reading bool   // a read is planned
	learnt  bool   // the handshake was answered

	// The server's end.
	gone    bool // the server has closed it, or never knew it
	greeted bool
	partial []byte // of a frame

	// The follower in between, while it is cut off. A connection around it has another one.
	around   bool
	heldUp   [][]byte
	heldDown []byte
	heldEnd  bool
	behind   bool          // it keeps something back
	givenUp  time.Duration // when the client gave up the request for its session; 0: it did not

	mute    bool // the next answer is lost
	begun   bool // the request for a session was passed on
	welcome bool // and answered
}

var (
	errReset   = errors.New("sim: connection reset")
	errEOF     = errors.New("sim: end of stream")
	errRefused = errors.New("sim: connection refused")
)

// write sends what the client has to say, at times in two pieces.
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

// atServer takes what arrives at the server's machine. For a connection that the
// process there does not know the kernel answers with a reset.
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
			return // what follows a lost request is lost with it
		}
		c.partial = rest
		c.pass(frame)
	}
}

// cutFrame takes a whole frame with its length off b, nil if there is none.
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

// pass hands a request to the server, unless the follower has to keep it.
func (c *conn) pass(frame []byte) {
	w := c.machine.world
	xid, op := requestHeader(frame)
	if !c.isCutOff() {
		if !c.begun {
			op = wire.OpCreateSession // whose request has no header
		}
		c.begun = true
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

// isCutOff reports whether the connection's follower is cut off now.
func (c *conn) isCutOff() bool { return !c.around && c.machine.world.isCutOff(&c.machine.link) }

// keepBack notes that the follower has something to pass on later.
func (c *conn) keepBack() {
	if !c.behind {
		c.behind = true
		c.machine.behind = append(c.machine.behind, c)
	}
}

// fromServer is what the server's process sends. It was carried out and is
// durable by now, so a break here is an answer that is lost.
func (c *conn) fromServer(b []byte, end bool) {
	if c.mute {
		c.cut(true, c.machine.world.oneIn(2))
		return
	}
	// Not ahead of the handshake's answer: there it could be read as one, and say
	// that the session is over.
	if c.machine.garbage != 0 && c.welcome {
		b = append(garbage(c.machine.garbage), b...)
		c.machine.garbage = 0
		c.machine.world.note("%s: garbage", c.client.name)
	}
	c.welcome = true
	if c.isCutOff() {
		c.heldDown = append(c.heldDown, b...)
		c.heldEnd = c.heldEnd || end
		c.keepBack()
		return
	}
	c.toClient(b, end)
}

// rejoin is the end of the follower's time without a leader: it goes on, or has
// given its clients up.
func (c *conn) rejoin(dropped bool) {
	// What the leader answered before the cut goes first, as it happened first.
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

// toClient sends b towards the client, at times in two pieces.
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

// hangUp lets the client read the end of the connection, after what is in flight.
func (c *conn) hangUp(err error) {
	c.machine.world.transit(c, down, func() {
		if !c.broken[down] {
			c.endAtClient(err)
		}
	})
}

// atClient takes what arrives at the client's machine.
func (c *conn) atClient(b []byte) {
	if c.closed || !c.client.alive || c.ended != nil {
		return
	}
	c.rx = append(c.rx, b...)
	c.planRead()
}

// endAtClient is the connection's end as the client's machine sees it.
func (c *conn) endAtClient(err error) {
	if c.closed || !c.client.alive || c.ended != nil {
		return
	}
	c.ended = err
	c.planRead()
}

// planRead wakes the client's reader. What arrives until it runs is read at once
// with the rest.
func (c *conn) planRead() {
	if !c.reading {
		c.reading = true
		c.client.run(netWork, func() { c.client.read(c) })
	}
}

// close is the client's: it is done with the connection. Requests that were sent
// before still arrive, and may be carried out.
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

// cut breaks the connection with all that is under way. Each side learns of it
// soon, or only by what it hears no more.
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
