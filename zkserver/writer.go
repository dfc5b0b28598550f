package zkserver

import (
	"slices"
	"time"
)

const (
	// maxPending is how many bytes may wait to be written before the loop stops applying a
	// connection's requests.
	maxPending = 256 << 10
	// closeGrace is how long a closing connection may take to accept its last bytes.
	closeGrace = time.Second
	// writePiece is how many bytes the writer writes before other goroutines run.
	writePiece = 128 << 10
)

// write is the connection's writer: it takes one piece of the outbox after the other and writes
// it. It runs on its own goroutine, which send starts with the first bytes that the loop
// cannot write itself and handle waits for. Without one it runs on handle's goroutine after
// the reader has ended. It closes the connection at its end.
func (c *conn) write() {
	var buf []byte
	for {
		var last bool
		if buf, last = c.takeOutput(buf); buf == nil {
			break
		}
		err := c.writeInTurns(buf)
		c.wrote(len(buf))
		if err != nil || last {
			break
		}
	}
	c.farewell()
	c.abort(nil)
}

// writeInTurns writes b. It yields after each piece: if the client reads fast, no write
// waits, and encrypting a long answer takes long.
func (c *conn) writeInTurns(b []byte) error {
	for i := 0; i < len(b); i += writePiece {
		if i > 0 {
			yield(c.srv.yields)
		}
		if _, err := c.nc.Write(b[i:min(i+writePiece, len(b))]); err != nil {
			return err
		}
	}
	return nil
}

// farewell tells a TLS client that the output is complete, so that it can distinguish this
// end from an attacker's. A client that does not read delays it by at most five seconds.
func (c *conn) farewell() {
	c.mu.Lock()
	orderly := c.output == outputClosing
	c.mu.Unlock()
	if h, ok := c.nc.(handshaker); ok && orderly {
		_ = h.CloseWrite() // the client may have disconnected
	}
}

// takeOutput waits for output and takes its first piece, whose buffer spare replaces. It returns
// nil if the connection is to be closed now, and last if it is to be closed after this output.
func (c *conn) takeOutput(spare []byte) (buf []byte, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.out.len() == 0 && c.output < outputClosing {
		c.notEmpty.Wait()
	}
	if c.output == outputAborted || c.out.len() == 0 {
		return nil, true
	}
	if cap(spare) > keepBuffer {
		spare = nil
	}
	buf = c.out.take(spare)
	c.writing = len(buf)
	return buf, c.output == outputClosing && c.out.len() == 0
}

// wrote records that n bytes were written, and makes the connection ready if the loop waits
// for that.
func (c *conn) wrote(n int) {
	c.mu.Lock()
	c.writing -= n
	resume := c.unblock()
	c.mu.Unlock()
	if resume {
		c.srv.markReady(c)
	}
}

// unblock opens the output if it is blocked and the writer has caught up, and reports
// whether it did. The caller holds c.mu.
func (c *conn) unblock() bool {
	if c.output != outputBlocked || c.out.len()+c.writing >= maxPending {
		return false
	}
	c.output = outputOpen
	return true
}

// send writes output to the client. If the client is slow, or the connection is more than a
// socket, it passes the output to the writer. With last it closes the connection afterwards. It
// never blocks. It aborts the connection of a client with more than MaxUnread unread bytes:
// the number of a client's requests bounds the replies, but not the events.
func (c *conn) send(out pieces, last bool) {
	if c.polled.active {
		c.srv.sendPolled(c, out, last)
		return
	}
	// Usually the socket has room. Waking a writer would cost more than the write.
	if !last && c.sock != nil {
		if out.write(c.writeNow); out.len() == 0 {
			return
		}
	}
	c.mu.Lock()
	if c.output >= outputClosing {
		c.mu.Unlock()
		return
	}
	if c.out.len()+c.writing > c.srv.opts.MaxUnread {
		c.mu.Unlock()
		c.abort(errTooSlow)
		return
	}
	c.out.addAll(out)
	if last {
		c.output = outputClosing
		c.notFull.Broadcast()
	}
	c.needWriter()
	c.mu.Unlock()
	if last {
		c.srv.requestLimit.wake()
		// This also ends a write that is blocked.
		c.nc.SetWriteDeadline(time.Now().Add(closeGrace))
	}
}

// postpone is send for output that flushWritable writes in one of the next rounds. It does
// not end the connection.
func (c *conn) postpone(out pieces) {
	c.mu.Lock()
	open, full := c.output < outputClosing, c.out.len()+c.writing > c.srv.opts.MaxUnread
	if open && !full {
		c.out.addAll(out)
	}
	c.mu.Unlock()
	switch {
	case open && full:
		c.abort(errTooSlow)
	case open && !c.polled.writable:
		c.polled.writable = true
		c.srv.loop.writable = append(c.srv.loop.writable, c)
	}
}

// writeNow writes as much of b as the socket takes at once, unless other output is waiting.
// Only the loop calls it.
func (c *conn) writeNow(b []byte) int {
	c.mu.Lock()
	free := c.out.len() == 0 && c.writing == 0 && c.output < outputClosing
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

// startWriter is needWriter for a caller that does not hold c.mu.
func (c *conn) startWriter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needWriter()
}

// needWriter wakes the writer, and starts it the first time. The caller holds c.mu.
func (c *conn) needWriter() {
	c.notEmpty.Signal()
	if c.writerDone != nil {
		return
	}
	done := make(chan struct{})
	c.writerDone = done
	go func() {
		defer close(done)
		c.write()
	}()
}

// awaitWriter returns when the writer has closed the connection. Without a writer, the
// calling goroutine becomes it.
func (c *conn) awaitWriter() {
	c.mu.Lock()
	done := c.writerDone
	if done == nil {
		c.writerDone = make(chan struct{})
	}
	c.mu.Unlock()
	if done != nil {
		<-done
		return
	}
	c.write()
}

// noteSlowReader adds c to the slow readers if its client keeps many bytes in memory. Only the
// loop calls it, as everything below.
func (s *Server) noteSlowReader(c *conn, bytes int) {
	if bytes > keepBuffer {
		s.loop.slowReaders[c] = true
		s.loop.slowReadersGrew = true
	}
}

// unread returns how many bytes the client has not read yet.
func (c *conn) unread() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.output == outputAborted {
		return 0
	}
	return c.out.len() + c.writing
}

// kept returns how many bytes the output occupies until the client has read it. A long answer
// stays in memory until the client has read almost all of it.
func (c *conn) kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.output == outputAborted {
		return 0
	}
	return c.out.memory() + c.writing
}

// cutSlowReaders aborts the connections with the most kept bytes if all slow readers
// together have more than MaxUnreadTotal. Each is within MaxUnread, but there may be
// thousands.
func (s *Server) cutSlowReaders() {
	l := &s.loop
	if !l.slowReadersGrew {
		return
	}
	l.slowReadersGrew = false
	type slowReader struct {
		c     *conn
		bytes int
	}
	var total int64
	slow := make([]slowReader, 0, len(l.slowReaders))
	for c := range l.slowReaders {
		n := c.kept()
		if n == 0 {
			delete(l.slowReaders, c)
			continue
		}
		total += int64(n)
		slow = append(slow, slowReader{c, n})
	}
	most := s.opts.MaxUnreadTotal
	if total <= most {
		return
	}
	// Equal ones are in the order of their ids, so that the order of the map has no effect.
	slices.SortFunc(slow, func(a, b slowReader) int {
		if a.bytes != b.bytes {
			return b.bytes - a.bytes
		}
		return int(a.c.id - b.c.id)
	})
	// Abort a quarter more than necessary. Otherwise the next reply would exceed the limit
	// again.
	for _, d := range slow {
		if total <= most*3/4 {
			return
		}
		d.c.abort(errTooSlow)
		delete(l.slowReaders, d.c)
		total -= int64(d.bytes)
	}
}
