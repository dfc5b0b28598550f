package zk

import (
	"runtime"
	"time"

	"github.com/zklock/zklock/internal/boottime"
)

// afterWriteError is how long the reader still reads answers after a write has
// failed.
const afterWriteError = time.Second

// A yield of longYield or more means that goroutines computed meanwhile. The writer then does
// not yield for yieldPause times as long, because it may have a heartbeat to write.
const (
	longYield  = 5 * time.Millisecond
	yieldPause = 100
)

// write writes the core's output that flush does not write, with one Write for all that
// is pending. It is the client's writer goroutine, and ends when the core has ended.
func (c *Client) write() {
	c.mu.Lock()
	var noYieldUntil time.Duration
	for {
		c.awaitOutput()
		if began := boottime.Recent(); c.core.Unanswered() > 1 && began >= noYieldUntil {
			// Goroutines that the last answers woke up probably have requests for the same
			// transaction.
			c.mu.Unlock()
			runtime.Gosched()
			c.mu.Lock()
			if now := boottime.Recent(); now-began >= longYield {
				noYieldUntil = now + yieldPause*(now-began)
			}
			c.awaitOutput()
		}
		if c.core.Ended() {
			break
		}
		// This write contains everything that was queued since the last one, unless a
		// write without waiting has left something.
		l := c.link
		buf := l.rest
		if l.rest = nil; len(buf) == 0 {
			buf = c.takeOutput()
		}
		l.writing = true
		c.mu.Unlock()
		_, err := l.conn.Write(buf)
		if err != nil {
			// The reader ends by this deadline, and first reads the answers that have
			// arrived.
			_ = l.conn.SetReadDeadline(time.Now().Add(afterWriteError))
		}
		c.mu.Lock()
		l.writing = false
		c.keepBuffer(buf)
		if err != nil {
			l.writeErr = err
		}
	}
	c.running--
	c.changed.Broadcast()
	c.mu.Unlock()
}

// awaitOutput waits until the writer has something to write or the core has ended. c.mu is
// held.
func (c *Client) awaitOutput() {
	for !c.core.Ended() && !c.writerMayWrite() {
		c.writable.Wait()
	}
}

// writerMayWrite reports whether the writer has something to write now. c.mu is held.
func (c *Client) writerMayWrite() bool {
	l := c.link
	return l != nil && l.writeErr == nil && !l.writing && (len(l.rest) > 0 || c.core.HasOutput())
}

// takeOutput returns the core's output. c.mu is held.
func (c *Client) takeOutput() []byte {
	// The reading comes before encoding, because Sent must not be late. It may be
	// early: a suspend that no reading has noticed makes a proof reach less far.
	now := boottime.Recent()
	buf := c.core.TakeOutput(c.spare, now)
	c.spare = nil
	c.arm(now)
	return buf
}

// keepBuffer keeps the buffer of a write for the next one. c.mu is held.
func (c *Client) keepBuffer(buf []byte) {
	if c.spareWrites.keep(cap(buf), len(buf), minKept, maxKeptWrite) {
		c.spare = buf
	}
}

// flush sends the core's output, and releases c.mu, which the caller holds. If no request
// is unanswered, flush writes itself, without waiting: to wake up the writer would take
// longer. Otherwise more requests probably follow, and the writer sends them together.
func (c *Client) flush() {
	if c.core.Unanswered() == 0 {
		c.writeDirectly()
	}
	if c.core.Ended() || c.writerMayWrite() {
		c.writable.Signal()
	}
	spawn := c.core.HasNotices() && !c.delivering
	c.mu.Unlock()
	if spawn {
		go c.deliver() // ends when nothing is left to deliver
	}
}

// writeDirectly writes the core's output without waiting, if the connection permits that and the
// writer is idle. It leaves the rest to the writer. c.mu is held, except during the write.
func (c *Client) writeDirectly() {
	l := c.link
	if l == nil || l.direct == nil || !c.writerMayWrite() || len(l.rest) > 0 {
		return
	}
	buf := c.takeOutput()
	l.writing = true
	c.mu.Unlock()
	n := writeNow(l.direct, buf)
	c.mu.Lock()
	l.writing = false
	if n < len(buf) {
		l.rest = buf[n:] // also after an error, which the writer gets again
	} else {
		c.keepBuffer(buf)
	}
}

// bufferPolicy decides how long a buffer is kept for reuse. Allocating it anew each
// time would be wasteful while much of it is used. But a client that was busy once
// and is mostly idle since should be as small as one that never was busy.
type bufferPolicy struct {
	smallUses int // consecutive uses of at most the small size
}

// idleUses is the number of small uses after which the buffer is freed. A client that
// holds locks writes and reads a little with each heartbeat.
const idleUses = 16

// keep reports whether to keep a buffer of this size, of which used bytes were just
// used. A buffer up to small is always kept, one above most never.
func (k *bufferPolicy) keep(size, used, small, most int) bool {
	switch {
	case used > small:
		k.smallUses = 0
	case k.smallUses < idleUses:
		k.smallUses++
	}
	return size <= small || size <= most && k.smallUses < idleUses
}
