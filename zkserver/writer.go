package zkserver

import (
	"slices"
	"time"
)

const (
	// parkBytes is how much may wait to be written before the loop leaves a
	// connection's further requests alone.
	parkBytes = 256 << 10
	// closeGrace is how long a closing connection may take to accept its last
	// bytes.
	closeGrace = time.Second
)

// write is the connection's writer: it takes everything that is queued and
// writes it in one call. It runs on a goroutine of its own, started by send with
// the first bytes that the loop can't write itself and awaited by handle, or on
// handle's once the reader has ended. It ends after closing the connection.
func (c *conn) write() {
	var buf []byte
	for {
		var last bool
		if buf, last = c.takeOutput(buf); buf == nil {
			break
		}
		_, err := c.nc.Write(buf)
		c.wrote(len(buf))
		if err != nil || last {
			break
		}
	}
	c.farewell()
	c.abort(nil)
}

// farewell tells a TLS client that what it got was all, so that it can tell
// this end from an attacker's cut. A client that does not read holds this up
// for five seconds at most.
func (c *conn) farewell() {
	c.mu.Lock()
	orderly := c.finish && !c.cut
	c.mu.Unlock()
	if h, ok := c.nc.(handshaker); ok && orderly {
		_ = h.CloseWrite() // the client may be gone
	}
}

// takeOutput waits for output and exchanges the outbox for the spare buffer.
// It returns nil when the connection is to be closed, and last when it is to
// be closed after this.
func (c *conn) takeOutput(spare []byte) (buf []byte, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) == 0 && !c.finish && !c.cut {
		c.filled.Wait()
	}
	if c.cut || len(c.out) == 0 {
		return nil, true
	}
	if cap(spare) > keepBuffer {
		spare = nil
	}
	buf, c.out = c.out, spare[:0]
	c.writing = len(buf)
	return buf, c.finish
}

// wrote notes that n bytes left, and calls the loop back if it was waiting.
func (c *conn) wrote(n int) {
	c.mu.Lock()
	c.writing -= n
	resume := c.parked && len(c.out)+c.writing < parkBytes
	if resume {
		c.parked = false
	}
	c.mu.Unlock()
	if resume {
		c.srv.enqueue(c)
	}
}

// send writes bytes, or queues them for the writer if the client is slow or has
// a connection that is more than a socket, and with last the end of the
// connection. It never blocks. A client that has let more than MaxUnread bytes
// pile up is cut off: replies are bounded by its requests, but events are not.
func (c *conn) send(b []byte, last bool) {
	if c.polled.on {
		c.srv.sendPolled(c, b, last)
		return
	}
	// Most of the time there is room in the socket. To wake a writer for it
	// would cost more than to write.
	if !last && c.sock != nil {
		if b = b[c.writeNow(b):]; len(b) == 0 {
			return
		}
	}
	c.mu.Lock()
	if c.cut || c.finish {
		c.mu.Unlock()
		return
	}
	if len(c.out)+c.writing > c.srv.opts.MaxUnread {
		c.mu.Unlock()
		c.abort(errTooSlow)
		return
	}
	if len(c.out) == 0 && len(b) > keepBuffer {
		c.out = slices.Clip(b) // to copy a long answer takes long, and its room is not used again
	} else {
		c.out = append(c.out, b...)
	}
	c.finish = last
	if last {
		c.room.Broadcast()
	}
	c.needWriter()
	c.mu.Unlock()
	if last {
		c.srv.pool.wake()
		// Also ends a write that is under way and stuck.
		c.nc.SetWriteDeadline(time.Now().Add(closeGrace))
	}
}

// writeNow writes as much of b as the socket takes at once, unless there is
// something to be written before it. It belongs to the loop.
func (c *conn) writeNow(b []byte) int {
	c.mu.Lock()
	free := len(c.out) == 0 && c.writing == 0 && !c.finish && !c.cut
	if free {
		c.writing = len(b)
	}
	c.mu.Unlock()
	if !free {
		return 0
	}
	n := c.sock.write(b)
	c.mu.Lock()
	c.writing = 0
	c.mu.Unlock()
	return n
}

// needWriter wakes the writer, and starts it the first time. The caller holds
// c.mu.
func (c *conn) needWriter() {
	c.filled.Signal()
	if c.writer != nil {
		return
	}
	done := make(chan struct{})
	c.writer = done
	go func() {
		defer close(done)
		c.write()
	}()
}

// awaitWriter returns when the writer has closed the connection. Without one the
// caller, who reads no more, becomes it.
func (c *conn) awaitWriter() {
	c.mu.Lock()
	done := c.writer
	if done == nil {
		c.writer = make(chan struct{})
	}
	c.mu.Unlock()
	if done != nil {
		<-done
		return
	}
	c.write()
}
