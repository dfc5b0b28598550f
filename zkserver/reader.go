package zkserver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// inboxBytes bounds the bytes of requests that wait for the loop on one connection. One
// frame may exceed it.
const inboxBytes = 256 << 10

// maxConnectRequest is the longest connect request, in bytes. Those of clients have about 50.
// Connections without a session are read by goroutines of their own, which compete with the
// loop for the processors: many long connect requests would delay all other clients.
const maxConnectRequest = 1 << 10

// idleBuffer is the size of every connection's read buffer, enough for the requests of
// most. busyBuffer is the size for connections that send several requests at a time.
const (
	idleBuffer = 512
	busyBuffer = 4096
)

// read is the connection's reader. It runs on the goroutine that serves the connection and
// returns true when the connection ends, or false when the loop has taken the connection
// over.
func (c *conn) read() bool {
	// Most connections need the buffer only for the handshake.
	br, _ := c.srv.readers.Get().(*bufio.Reader)
	if br == nil {
		br = bufio.NewReaderSize(nil, idleBuffer)
	}
	br.Reset(c.blockingIO)
	defer func() {
		br.Reset(nil) // otherwise it would keep the connection in memory
		c.srv.readers.Put(br)
	}()
	if !c.answerWord(br) && c.readFrames(br) {
		return false
	}
	c.endRead()
	return true
}

// readsPerTurn is how many reads may follow each other before other goroutines run. Over TLS,
// one takes up to about 10 us, and more if the client changes keys. If that many take busyTime or
// longer, they waited for the client.
const (
	readsPerTurn = 8
	busyTime     = 10 * time.Millisecond
)

// Read reads for the connection's reader. The client may send so fast that no read waits.
// Go interrupts such a goroutine only after 10 ms, and the loop would wait for all of them.
// The reader of a client that sends less does not yield: it would wait for all busy ones.
func (b *blockingIO) Read(p []byte) (int, error) {
	if b.reads++; b.reads%readsPerTurn == 0 {
		if time.Since(b.turnBegan) < busyTime {
			yield(b.yields)
		}
		b.turnBegan = time.Now()
	}
	return b.nc.Read(p)
}

// yield lets other goroutines run. Those of busy connections take turns to yield, as many at
// a time as turns has room for: the loop then waits for a few of them, not for all.
func yield(turns chan struct{}) {
	turns <- struct{}{}
	runtime.Gosched()
	<-turns
}

// endRead tells the loop that no more input arrives.
func (c *conn) endRead() {
	c.mu.Lock()
	c.readDone = true
	c.mu.Unlock()
	c.srv.markReady(c)
}

// answerWord answers a four-letter word if the connection begins with one, and reports
// whether it did. Read as lengths, the words are above any limit, so no frame is mistaken
// for one.
func (c *conn) answerWord(br *bufio.Reader) bool {
	head, err := br.Peek(4)
	if err != nil {
		c.failRead(err)
		return true
	}
	if head[0] == tlsRecord && head[1] == 3 {
		c.failRead(errUnexpectedTLS)
		c.abort(nil)
		return true
	}
	name := string(head)
	if _, ok := fourLetterWords[name]; !ok {
		return false
	}
	c.mu.Lock()
	c.fourLetter = true
	c.mu.Unlock()
	a := &answer{nc: c.nc, timeout: c.srv.opts.HandshakeTimeout, slots: c.srv.words, aborted: c.watchAbort()}
	if a.resume(); a.err == nil {
		c.srv.countWord()
		c.srv.answerFourLetter(name, a)
	}
	if errors.Is(a.err, os.ErrDeadlineExceeded) {
		c.fail(errTooSlow)
	}
	c.send(pieces{}, true)
	return true
}

// readFrames reads requests until the connection ends or the server stops reading. The
// first frame lifts the handshake's deadline: from then on the session timeout ends a
// silent client. It reports whether the loop reads on.
func (c *conn) readFrames(br *bufio.Reader) (handed bool) {
	var buf []byte
	for first := true; ; first = false {
		limit := c.srv.opts.MaxFrame
		if first {
			limit = min(limit, maxConnectRequest)
		}
		frame, err := wire.ReadFrame(br, buf, limit)
		if err != nil {
			c.failRead(err)
			return false
		}
		if first {
			c.srv.handshakeReceived(c)
			if !c.srv.liftDeadline(c.nc) {
				return false
			}
		}
		if first && c.handOver(frame, br) {
			return true
		}
		if first {
			c.sock = newSocket(c.nc) // the loop does not know c yet
		}
		if !c.push(frame, frameBuffered(br)) {
			return false
		}
		if buf = frame[:0]; cap(buf) > keepBuffer {
			buf = nil
		}
		if br.Buffered() > br.Size()/2 {
			br = bufio.NewReaderSize(br, busyBuffer) // returns br if that is large enough
		}
	}
}

// frameBuffered reports whether another whole frame can be read without waiting. Frames of
// one packet then reach the loop as one batch.
func frameBuffered(br *bufio.Reader) bool {
	if br.Buffered() < 4 {
		return false
	}
	head, err := br.Peek(4)
	return err == nil && uint64(binary.BigEndian.Uint32(head)) <= uint64(br.Buffered()-4)
}

// push passes a frame to the loop, after waiting for room. It reports whether the reader
// continues.
func (c *conn) push(frame []byte, more bool) bool {
	at := c.srv.elapsed()
	c.mu.Lock()
	if c.inboxFull() {
		c.srv.count.throttled.Add(1)
	}
	for c.inboxFull() {
		c.mu.Unlock()
		c.srv.markReady(c)
		c.mu.Lock()
		for c.inboxFull() {
			c.notFull.Wait()
		}
	}
	if size := int64(len(frame)); c.usage.requests > 0 && !c.srv.requestLimit.fits(size) {
		c.mu.Unlock()
		c.srv.count.throttled.Add(1)
		c.srv.markReady(c)
		c.srv.requestLimit.await(c, size)
		c.mu.Lock()
	}
	if c.output >= outputClosing {
		c.mu.Unlock()
		return false
	}
	c.usage.requests++
	c.usage.bytes += int64(len(frame))
	c.srv.requestLimit.add(int64(len(frame)))
	c.in.buf = append(c.in.buf, frame...)
	c.in.frames = append(c.in.frames, arrival{end: len(c.in.buf), at: at})
	c.mu.Unlock()
	if !more {
		c.srv.markReady(c)
	}
	return true
}

// inboxFull reports whether the reader must wait. The caller holds c.mu.
func (c *conn) inboxFull() bool {
	return c.output < outputClosing &&
		(int(c.unanswered)+len(c.in.frames) >= c.srv.opts.MaxOutstanding || len(c.in.buf) >= inboxBytes)
}

// failRead records why reading ended, unless the client closed its connection.
func (c *conn) failRead(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || c.srv.draining() {
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errHandshake
	}
	c.fail(err)
}

// liftDeadline removes the handshake's deadline from nc. It returns false if the server is
// shutting down: that stops readers by a deadline in the past, which liftDeadline must not
// overwrite.
func (s *Server) liftDeadline(nc net.Conn) bool {
	nc.SetDeadline(time.Time{})
	if s.draining() {
		nc.SetReadDeadline(past)
		return false
	}
	return true
}

// past is a deadline that has passed on every clock.
var past = time.Unix(1, 0)
