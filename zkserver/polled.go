package zkserver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// Connections without goroutines. The loop itself reads and writes the sockets of plain
// connections once they have sent their first request. Until then, and for TLS and
// connections that are not sockets, there are goroutines.

// errAgain reports that a socket has nothing to read now, or no room.
var errAgain = errors.New("zkserver: the socket is not ready")

// polledIO is the state of a polled connection. Only the loop uses it, except fd, which
// other goroutines shut down.
type polledIO struct {
	fd        int32  // guarded by the connection's mu, changed by the loop; -1 once closed
	slot      int32  // index in the loop's slots
	partial   []byte // bytes read, and not taken as frames yet
	active    bool   // the connection is polled; guarded as fd
	readable  bool   // the socket may have more to read
	hup       bool   // the client sends nothing more
	broken    bool   // writing has failed
	throttled bool   // not read, because too many requests are unanswered
	writable  bool   // on the loop's list of connections to flush
}

// openPoller returns the poller and creates it at the first call. It returns nil if there
// is none.
func (s *Server) openPoller() *poller {
	if p := s.poll.Load(); p != nil {
		return p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.poll.Load(); p != nil || s.loopEnded {
		return p
	}
	p, err := newPoller()
	if err != nil {
		return nil
	}
	s.poll.Store(p)
	return p
}

// handOver gives the connection to the loop, with the first request and the bytes read
// after it. It reports whether it did: then the goroutine must not use the connection any
// more.
func (c *conn) handOver(first []byte, br *bufio.Reader) bool {
	// In the other cases a goroutine serves the connection to its end.
	if plainSocket(c.nc) == nil || !c.limited || c.srv.openPoller() == nil {
		return false
	}
	nc := c.nc // the loop is about to own c
	fd, err := takeSocket(nc)
	if err != nil {
		return false // such as when no descriptor is left
	}
	rest, _ := br.Peek(br.Buffered()) // cannot fail
	read := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(first)+len(rest)), uint32(len(first)))
	read = append(append(read, first...), rest...)
	if !c.srv.registerHandOver(c, &polledIO{fd: int32(fd), partial: read, readable: true}) {
		closeSocket(fd)
		return false
	}
	nc.Close() // removes the socket from Go's poller
	c.srv.wakeLoop()
	return true
}

// registerHandOver puts c on the list of connections that the loop takes over, unless the
// connection or the loop has ended.
func (s *Server) registerHandOver(c *conn, p *polledIO) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.loopEnded || c.output == outputAborted {
		return false
	}
	c.polled = *p
	c.polled.active = true
	s.handedOver = append(s.handedOver, c)
	return true
}

// startPolling starts to poll a connection that was handed over.
func (s *Server) startPolling(c *conn) {
	l, p := &s.loop, &c.polled
	if c.phase == connDisconnected {
		return // it was aborted and closed meanwhile
	}
	if n := len(l.free); n > 0 {
		p.slot = l.free[n-1]
		l.free = l.free[:n-1]
		l.slots[p.slot] = c
	} else {
		p.slot = int32(len(l.slots))
		l.slots = append(l.slots, c)
	}
	l.polls++
	c.mu.Lock()
	c.blockingIO = nil
	c.mu.Unlock()
	if err := s.poll.Load().watch(int(p.fd), int(p.slot)); err != nil {
		c.fail(fmt.Errorf("zkserver: cannot poll: %w", err))
		c.endInput()
	} else if s.draining() {
		c.endInput()
	}
	s.requeue(c)
}

// endInput records that no more input is read.
func (c *conn) endInput() {
	c.polled.readable = false
	c.mu.Lock()
	c.readDone = true
	c.mu.Unlock()
}

// readRequests reads requests of a polled connection into its empty work list, within the
// limits. Input beyond them stays in the socket, and the client waits. It returns a time at
// which the requests were here.
func (s *Server) readRequests(c *conn) tree.Now {
	p := &c.polled
	c.work.reset()
	c.next = 0
	p.throttled = int(c.unanswered) >= s.opts.MaxOutstanding || c.usage.requests > 0 && !s.requestLimit.fits(0)
	if p.throttled {
		s.count.throttled.Add(1)
		return s.now()
	}
	in := p.partial
	if !s.hasWholeFrame(in) && p.readable {
		in = s.readSocket(c)
	}
	now := s.now()
	taken := s.takeFrames(c, in, now.Mono)
	if taken == 0 && len(p.partial) > 0 {
		return now // in is partial: a large request that arrives in small pieces is not copied for each piece
	}
	if p.partial = append(p.partial[:0], in[taken:]...); len(p.partial) == 0 {
		p.partial = nil // most requests arrive whole
	}
	return now
}

// readSocket reads once. It returns the rest of the last read and the new bytes.
func (s *Server) readSocket(c *conn) []byte {
	p, size := &c.polled, pollBuffer
	if !s.requestLimit.fits(0) {
		size = busyBuffer // it has no unanswered requests and may read a little
	}
	b, err := s.poll.Load().read(int(p.fd), size)
	switch {
	case errors.Is(err, errAgain):
		if p.readable = false; p.broken {
			c.endInput() // the client could not receive an answer
		}
	case err == nil && len(b) > 0:
		p.readable = len(b) == size || p.hup
	default:
		if p.broken = err != nil; err == nil {
			err = io.EOF
		} else {
			err = os.NewSyscallError("read", err)
		}
		if len(p.partial) > 0 {
			err = truncated(err)
		}
		c.failRead(err)
		c.endInput()
	}
	if len(p.partial) == 0 {
		return b
	}
	p.partial = append(p.partial, b...)
	return p.partial
}

// truncated returns the error for a request whose rest does not arrive.
func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: cut short: %w", wire.ErrFrame, err)
}

// frameSize returns the length of the frame at the start of b, including its four length
// bytes, and whether b has these bytes.
func frameSize(b []byte) (int64, bool) {
	if len(b) < 4 {
		return 0, false
	}
	return 4 + int64(int32(binary.BigEndian.Uint32(b))), true
}

// hasWholeFrame reports whether b begins with a whole frame, or with bytes that cannot be
// one.
func (s *Server) hasWholeFrame(b []byte) bool {
	size, ok := frameSize(b)
	return ok && (size <= int64(len(b)) || size > 4+int64(s.opts.MaxFrame))
}

// takeFrames puts the whole frames at the start of b on the connection's work list, up to
// MaxOutstanding. The server read them before the time at. It returns the number of bytes
// taken.
func (s *Server) takeFrames(c *conn, b []byte, at time.Duration) (taken int) {
	room, bytes := s.opts.MaxOutstanding-int(c.unanswered), int64(0)
	for len(c.work.frames) < room {
		size, ok := frameSize(b[taken:])
		if ok && (size < 4 || size > 4+int64(s.opts.MaxFrame)) {
			c.failRead(fmt.Errorf("%w: length %d, want 0 to %d", wire.ErrFrame, size-4, s.opts.MaxFrame))
			c.endInput()
			taken = len(b)
			break
		}
		if !ok || size > int64(len(b)-taken) {
			break
		}
		c.work.buf = append(c.work.buf, b[taken+4:taken+int(size)]...)
		c.work.frames = append(c.work.frames, arrival{end: len(c.work.buf), at: at})
		taken += int(size)
		bytes += size - 4
	}
	if n := len(c.work.frames); n > 0 {
		c.mu.Lock()
		c.unanswered += int32(n)
		c.usage.requests += n
		c.usage.bytes += bytes
		c.mu.Unlock()
		s.requestLimit.requests.Add(int64(n))
		s.requestLimit.bytes.Add(bytes)
	}
	return taken
}

// sendPolled is send for a polled connection.
func (s *Server) sendPolled(c *conn, out pieces, last bool) {
	p := &c.polled
	c.mu.Lock()
	over, queued := c.output >= outputClosing, c.out.len()
	c.mu.Unlock()
	if over {
		return
	}
	if queued == 0 && !p.broken {
		out.write(func(b []byte) int {
			n, err := s.poll.Load().write(int(p.fd), b)
			if err != nil && !errors.Is(err, errAgain) {
				s.writeFailed(c)
			}
			return n
		})
	}
	if p.broken {
		out = pieces{}
	}
	if out.len() == 0 && !last {
		return // the usual case
	}
	if queued > s.opts.MaxUnread {
		c.abort(errTooSlow)
		return
	}
	c.mu.Lock()
	c.out.addAll(out)
	if last && c.output < outputClosing {
		c.output = outputClosing
	}
	c.mu.Unlock()
	if p.writable && queued > 0 && queued <= keepBuffer {
		s.flushPolled(c) // an answer does not wait for the turn of postponed events
	}
	waits := last && c.unread() > 0
	if last {
		c.endInput()
		s.requeue(c)
	}
	if waits {
		time.AfterFunc(closeGrace, func() { c.abort(nil) })
	}
}

// flushWritable writes output to the sockets that have room again, and output that was
// postponed. Many clients may begin to read at once, and each socket may take megabytes: it
// writes until limit has passed, but to at least one, and leaves the others to the next
// rounds.
func (s *Server) flushWritable(limit time.Duration) {
	l, n := &s.loop, 0
	if len(l.writable) == 0 {
		return
	}
	began, spent := s.elapsed(), time.Duration(0)
	for n < len(l.writable) && (n == 0 || spent < limit) {
		c := l.writable[n]
		c.polled.writable = false
		switch {
		case c.unread() == 0: // it was closed meanwhile
		case c.polled.active:
			s.flushPolled(c)
		default:
			c.startWriter()
		}
		n++
		spent = s.elapsed() - began
	}
	l.writable = slices.Delete(l.writable, 0, n)
	l.longestTurn = max(l.longestTurn, spent)
}

// flushPolled writes output that the socket did not take before.
func (s *Server) flushPolled(c *conn) {
	broken, left := false, true
	c.mu.Lock()
	for left && !broken {
		b := c.out.next()
		c.mu.Unlock()
		n, err := s.poll.Load().write(int(c.polled.fd), b)
		broken = err != nil && !errors.Is(err, errAgain)
		c.mu.Lock()
		if c.output == outputAborted {
			break // its output was dropped
		}
		c.out.wrote(n)
		left = n == len(b) && c.out.len() > 0
	}
	if broken {
		c.out = pieces{}
	}
	unblocked := c.unblock()
	resume := unblocked || c.out.len() == 0 && c.output == outputClosing
	c.mu.Unlock()
	if broken {
		s.writeFailed(c)
	} else if resume {
		s.requeue(c)
	}
}

// writeFailed records that nothing can be written any more. Reading reports the cause and
// reaches the end of the input. Unwritten output is dropped: the loop would wait forever
// for the client to read it.
func (s *Server) writeFailed(c *conn) {
	p := &c.polled
	p.broken, p.hup, p.readable = true, true, true
	s.requeue(c)
}

// closePolled closes a polled connection that has ended, if its output is written or cannot
// be, or anyway is set.
func (s *Server) closePolled(c *conn, anyway bool) {
	l, p := &s.loop, &c.polled
	c.mu.Lock()
	fd := p.fd
	if fd < 0 || !anyway && c.output != outputAborted && !p.broken && c.out.len() > 0 {
		c.mu.Unlock()
		return
	}
	p.fd, c.output, c.out = -1, outputAborted, pieces{}
	c.mu.Unlock()
	closeSocket(int(fd))
	if int(p.slot) < len(l.slots) && l.slots[p.slot] == c {
		l.slots[p.slot] = nil
		l.free = append(l.free, p.slot)
		l.polls--
	}
	s.unregister(c)
	s.handlers.Done()
}

// stopReadingPolled stops reading all polled connections, for Shutdown.
func (s *Server) stopReadingPolled() {
	for _, c := range s.loop.slots {
		if c != nil {
			c.endInput()
			s.requeue(c)
		}
	}
}

// closeAllPolled closes the remaining polled connections at the loop's end, and the poller.
func (s *Server) closeAllPolled() {
	s.mu.Lock()
	s.loopEnded, s.handedOver = true, nil
	conns := slices.Clone(s.live)
	s.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		active := c.polled.active
		c.mu.Unlock()
		if active {
			s.closePolled(c, true)
		}
	}
	if p := s.poll.Load(); p != nil {
		p.close()
	}
}

// waitForEvents waits until the loop has work, and processes socket events.
func (s *Server) waitForEvents() {
	p, ms := s.poll.Load(), s.waitMillis()
	if ms != 0 {
		p.setSleeping(true)
	}
	// From here on, wakeLoop sees that the loop sleeps.
	if s.consumeWake() || isClosed(s.stop) {
		ms = 0
	}
	p.wait(ms, s.onSocketEvent)
	p.setSleeping(false)
	s.consumeWake() // the next round does the work
}

// checkForWork reports whether the loop has new work since its last check.
func (s *Server) checkForWork() bool {
	if s.loop.polls > 0 {
		s.poll.Load().wait(0, s.onSocketEvent)
	}
	return len(s.loop.runnable) > 0 || s.hasReady()
}

// consumeWake reports whether the loop was woken.
func (s *Server) consumeWake() bool {
	select {
	case <-s.wake:
		return true
	default:
		return false
	}
}

// waitMillis returns how many milliseconds the loop may sleep, -1 for no limit.
func (s *Server) waitMillis() int {
	l := &s.loop
	next, ok := l.tree.NextTick()
	switch {
	case len(l.runnable)+len(l.writable) > 0:
		return 0
	case ok:
		left := max(next, l.tickNotBefore) - s.elapsed()
		return int(min(max((left+time.Millisecond-1)/time.Millisecond, 0), 1<<30))
	}
	return -1
}

// onSocketEvent processes an event of the poller.
func (s *Server) onSocketEvent(slot int, in, hup, out bool) {
	c := s.loop.slots[slot]
	if c == nil {
		return
	}
	if out && !c.polled.writable && c.unread() > 0 {
		c.polled.writable = true
		s.loop.writable = append(s.loop.writable, c)
	}
	if in && !c.readDone {
		c.polled.readable = true
		c.polled.hup = c.polled.hup || hup
		s.requeue(c)
	}
}
