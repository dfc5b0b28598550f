package zkserver

import (
	"fmt"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// The loop's side of a connection. All of it runs on the loop's goroutine.

// takeInput exchanges the inbox, if it holds anything, for the one that was
// worked off.
func (c *conn) takeInput() {
	c.work.reset()
	c.next = 0
	c.mu.Lock()
	c.work, c.in = c.in, c.work
	c.waiting += len(c.work.frames)
	c.room.Signal()
	c.mu.Unlock()
}

// deliver hands what is held to the writer, and room for as many requests as
// were answered to the reader.
func (c *conn) deliver() {
	o := &c.held
	sent := len(o.frames) > 0
	if sent || o.end {
		c.send(o.frames, o.end)
	}
	if sent {
		c.srv.noteBacklog(c, c.backlog())
	}
	if o.answered > 0 {
		c.mu.Lock()
		requests, bytes := c.pooled.take(o.answered, o.answeredBytes)
		c.waiting -= o.answered
		if c.driven != nil {
			c.room.Signal()
		}
		c.mu.Unlock()
		c.srv.pool.sub(requests, bytes)
	}
	o.reset()
}

// laden reports whether c has as much output waiting for a sync as it may have
// before more of its requests are applied.
func (c *conn) laden() bool {
	return c.turn != nil && len(c.staged.frames)+len(c.held.frames) >= parkBytes
}

// stuck reports whether c has to wait for its answers to leave. Those that have
// left since hold nothing up, and nobody would come back to it for their sake.
func (c *conn) stuck() bool {
	return (c.touched || c.aboard) && (c.laden() || c.polled.choked)
}

// outlook reports whether c has more input to be taken now, or has come to
// its end. If neither, whoever changes that will enqueue c: the reader with
// input, or the writer once a client that reads slowly has caught up.
func (c *conn) outlook() (more, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := &c.polled; p.on && (c.cut || c.ended) {
		// What stands in its socket is void: to read up to its end, past any
		// bound, would only keep the connection.
		p.readable, c.readDone = false, true
	}
	left := c.leftOver()
	if !left || c.ended {
		return false, c.readDone
	}
	c.parked = !c.cut && len(c.out)+c.writing >= parkBytes
	return !c.parked && !c.heldBack(c.srv.elapsed()), false
}

// hasInput reports whether there are requests that were not applied yet.
func (c *conn) hasInput() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leftOver()
}

// leftOver is hasInput for a caller that holds c.mu.
func (c *conn) leftOver() bool {
	if c.unfinished || c.turn != nil && c.next < len(c.work.frames) || c.driven != nil && len(c.in.frames) > 0 {
		return true
	}
	p := &c.polled
	return p.on && (p.readable || c.srv.whole(p.partial))
}

// backlogged reports whether c waits for its writer: then more input, of
// which the reader tells, must not be applied either.
func (c *conn) backlogged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parked && !c.cut
}

// waits reports whether the loop must not apply more input of c yet: c is backlogged,
// or too many passwords are guessed at its address. Only the loop calls it.
func (c *conn) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parked && !c.cut || c.heldBack(c.srv.elapsed())
}

// greet handles the first frame of a connection, which has no header.
func (s *Server) greet(c *conn, frame []byte, now tree.Now) {
	c.greeted = true
	var req wire.ConnectRequest
	r := jute.NewReader(frame)
	req.Decode(r)
	// As in Java, what stands behind the record is passed over.
	if err := r.Err(); err != nil {
		c.ended, c.staged.end = true, true
		c.fail(fmt.Errorf("zkserver: bad connect request: %w", err))
		return
	}
	who := tree.Peer{Addr: c.peer.addr(), Share: shareOf(c.bound())}
	if c.driven != nil {
		who.X509 = c.subject
	}
	s.loop.tree.Connect(c.id, who, &req, now, &s.loop.out)
}

// fail keeps the reason of a connection's end for the log.
func (c *conn) fail(reason error) {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = reason
	}
	c.mu.Unlock()
}
