package zkserver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// inboxBytes bounds the bytes of requests that wait for the loop on one
// connection. One frame may exceed it, whatever its size.
const inboxBytes = 256 << 10

// idleBuffer is the room for input that every connection has, enough for the
// requests of most; busyBuffer is what those get that send several at a time.
const (
	idleBuffer = 512
	busyBuffer = 4096
)

// read is the connection's reader. It runs on the goroutine that serves the
// connection and ends when the connection does, or returns false when the loop
// has taken that over.
func (c *conn) read() bool {
	// Most are only needed for a handshake.
	br, _ := c.srv.readers.Get().(*bufio.Reader)
	if br == nil {
		br = bufio.NewReaderSize(nil, idleBuffer)
	}
	br.Reset(c.nc)
	defer func() {
		br.Reset(nil) // or it would keep the connection
		c.srv.readers.Put(br)
	}()
	if !c.answerWord(br) && c.readFrames(br) {
		return false
	}
	c.endRead()
	return true
}

// endRead tells the loop that nothing more will come.
func (c *conn) endRead() {
	c.mu.Lock()
	c.readDone = true
	c.mu.Unlock()
	c.srv.enqueue(c)
}

// answerWord answers a four-letter word if the connection begins with one,
// and reports whether it did. The words read as lengths beyond any limit, so
// that no frame is mistaken for one.
func (c *conn) answerWord(br *bufio.Reader) bool {
	head, err := br.Peek(4)
	if err != nil {
		c.failRead(err)
		return true
	}
	if head[0] == tlsRecord && head[1] == 3 {
		c.failRead(errHello)
		c.abort(nil)
		return true
	}
	name := string(head)
	if _, ok := words[name]; !ok {
		return false
	}
	c.mu.Lock()
	c.word = true
	c.mu.Unlock()
	c.srv.countWord()
	a := &answer{nc: c.nc, timeout: c.srv.opts.HandshakeTimeout}
	c.srv.answerTo(name, a)
	if errors.Is(a.err, os.ErrDeadlineExceeded) {
		c.fail(errTooSlow)
	}
	c.send(nil, true)
	return true
}

// readFrames reads requests until the connection ends or the server stops
// reading. The handshake's deadline is lifted with the first frame: from then
// on the session's timeout ends a client that is silent. It reports whether the
// loop reads on.
func (c *conn) readFrames(br *bufio.Reader) (handed bool) {
	var buf []byte
	for first := true; ; first = false {
		frame, err := wire.ReadFrame(br, buf, c.srv.opts.MaxFrame)
		if err != nil {
			c.failRead(err)
			return false
		}
		if first {
			c.srv.opened(c)
			if !c.srv.liftDeadline(c.nc) {
				return false
			}
		}
		if first && c.handOver(frame, br) {
			return true
		}
		if first {
			c.sock = newSocket(c.nc) // the loop has not heard of c yet
		}
		if !c.push(frame, frameBuffered(br)) {
			return false
		}
		if buf = frame[:0]; cap(buf) > keepBuffer {
			buf = nil
		}
		if br.Buffered() > br.Size()/2 {
			br = bufio.NewReaderSize(br, busyBuffer) // itself, once it has as much
		}
	}
}

// frameBuffered reports whether another whole frame can be read without
// waiting. Frames that came in one packet then reach the loop as one batch.
func frameBuffered(br *bufio.Reader) bool {
	if br.Buffered() < 4 {
		return false
	}
	head, err := br.Peek(4)
	return err == nil && uint64(binary.BigEndian.Uint32(head)) <= uint64(br.Buffered()-4)
}

// push hands a frame to the loop, after waiting for room. It reports whether
// the reader shall go on.
func (c *conn) push(frame []byte, more bool) bool {
	at := c.srv.elapsed()
	c.mu.Lock()
	if c.full() {
		c.srv.count.throttled.Add(1)
	}
	for c.full() {
		c.mu.Unlock()
		c.srv.enqueue(c)
		c.mu.Lock()
		for c.full() {
			c.room.Wait()
		}
	}
	if size := int64(len(frame)); c.pooled.requests > 0 && !c.srv.pool.fits(size) {
		c.mu.Unlock()
		c.srv.count.throttled.Add(1)
		c.srv.enqueue(c)
		c.srv.pool.await(c, size)
		c.mu.Lock()
	}
	if c.cut || c.finish {
		c.mu.Unlock()
		return false
	}
	c.pooled.requests++
	c.pooled.bytes += int64(len(frame))
	c.srv.pool.add(int64(len(frame)))
	c.in.buf = append(c.in.buf, frame...)
	c.in.frames = append(c.in.frames, arrival{end: len(c.in.buf), at: at})
	c.mu.Unlock()
	if !more {
		c.srv.enqueue(c)
	}
	return true
}

// full reports whether the reader must wait. The caller holds c.mu.
func (c *conn) full() bool {
	return !c.cut && !c.finish &&
		(c.waiting+len(c.in.frames) >= c.srv.opts.MaxOutstanding || len(c.in.buf) >= inboxBytes)
}

// failRead notes why reading ended, if it is worth a word: a client that
// closes its connection is not.
func (c *conn) failRead(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || c.srv.draining() {
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errHandshake
	}
	c.mu.Lock()
	if c.reason == nil {
		c.reason = err
	}
	c.mu.Unlock()
}

// liftDeadline ends the handshake's deadline on nc. It returns false when the
// server is shutting down, which stops readers by a deadline in the past: the
// two must not overwrite each other.
func (s *Server) liftDeadline(nc net.Conn) bool {
	nc.SetDeadline(time.Time{})
	if s.draining() {
		nc.SetReadDeadline(past)
		return false
	}
	return true
}

// past is a deadline that has passed, by any clock.
var past = time.Unix(1, 0)
