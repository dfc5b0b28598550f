package zkserver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// Connections without goroutines. The loop itself reads and writes the sockets of
// plain connections that have sent their first request; what comes before that,
// TLS, and what is no socket has goroutines.

// errAgain says that a socket has nothing to read at the moment, or no room.
var errAgain = errors.New("zkserver: the socket is not ready")

// polled is the loop's part of such a connection. But for fd, which others cut, it
// belongs to the loop.
type polled struct {
	fd       int32  // guarded by the connection's mu, changed by the loop; -1 once closed
	slot     int32  // in the loop's table
	partial  []byte // read, and not taken yet
	on       bool   // the connection is polled; guarded as fd
	readable bool   // there may be more to read
	hup      bool   // the peer has sent all
	broken   bool   // nothing can be written any more
	choked   bool   // was not read since too much is unanswered
}

// thePoller returns the poller, made when it is first needed, or nil if there is
// none.
func (s *Server) thePoller() *poller {
	if p := s.poll.Load(); p != nil {
		return p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.poll.Load(); p != nil || s.ended {
		return p
	}
	p, err := newPoller()
	if err != nil {
		return nil
	}
	s.poll.Store(p)
	return p
}

// handOver gives the connection to the loop, with the first request and what was
// read behind it, and reports whether that was done: the goroutine then has no more
// to do with it.
func (c *conn) handOver(first []byte, br *bufio.Reader) bool {
	// The others wait for the connection's end.
	if plainSocket(c.nc) == nil || !c.limited || c.srv.thePoller() == nil {
		return false
	}
	nc := c.nc // the loop soon takes c
	fd, err := takeSocket(nc)
	if err != nil {
		return false // no descriptor is left, say
	}
	rest, _ := br.Peek(br.Buffered()) // can't fail
	read := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(first)+len(rest)), uint32(len(first)))
	read = append(append(read, first...), rest...)
	if !c.srv.acceptHanded(c, &polled{fd: int32(fd), partial: read, readable: true}) {
		closeSocket(fd)
		return false
	}
	nc.Close() // Go's poller lets go of the socket
	c.srv.wakeLoop()
	return true
}

// acceptHanded puts c on the list of those that the loop takes over, unless it is
// too late for that.
func (s *Server) acceptHanded(c *conn, p *polled) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.ended || c.cut {
		return false
	}
	c.polled = *p
	c.polled.on = true
	s.handed = append(s.handed, c)
	return true
}

// adopt begins to poll a connection that was handed over.
func (s *Server) adopt(c *conn) {
	l, p := &s.loop, &c.polled
	if c.gone {
		return // it was cut meanwhile, and released
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
	c.driven = nil
	c.mu.Unlock()
	if err := s.poll.Load().watch(int(p.fd), int(p.slot)); err != nil {
		c.fail(fmt.Errorf("zkserver: cannot poll: %w", err))
		c.endInput()
	} else if s.draining() {
		c.endInput()
	}
	s.later(c)
}

// endInput notes that nothing more is to be read.
func (c *conn) endInput() {
	c.polled.readable = false
	c.mu.Lock()
	c.readDone = true
	c.mu.Unlock()
}

// fill reads requests of a polled connection into its empty work list, as far as
// the limits allow. What they hold back stays in the socket, and the client waits.
// It returns a moment at which they were here.
func (s *Server) fill(c *conn) tree.Now {
	p := &c.polled
	c.work.reset()
	c.next = 0
	p.choked = c.waiting >= s.opts.MaxOutstanding || c.pooled.requests > 0 && !s.pool.fits(0)
	if p.choked {
		s.count.throttled.Add(1)
		return s.now()
	}
	in := p.partial
	if !s.whole(in) && p.readable {
		in = s.receive(c)
	}
	now := s.now()
	taken := s.take(c, in, now.Mono)
	if taken == 0 && len(p.partial) > 0 {
		return now // in is partial: a large request that comes in crumbs is not moved for each
	}
	if p.partial = append(p.partial[:0], in[taken:]...); len(p.partial) == 0 {
		p.partial = nil // most requests come whole
	}
	return now
}

// receive reads once, and returns that behind what was left of the last read.
func (s *Server) receive(c *conn) []byte {
	p, size := &c.polled, pollBuffer
	if !s.pool.fits(0) {
		size = busyBuffer // it has nothing unanswered and may go on, a bit
	}
	b, err := s.poll.Load().read(int(p.fd), size)
	switch {
	case errors.Is(err, errAgain):
		if p.readable = false; p.broken {
			c.endInput() // of a client that could hear no answer
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
			err = cutShort(err)
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

// cutShort is the error of a request whose rest does not come.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: cut short: %w", wire.ErrFrame, err)
}

// frameSize is the length of the frame that b begins with, its own four bytes
// included, and whether it can be told.
func frameSize(b []byte) (int64, bool) {
	if len(b) < 4 {
		return 0, false
	}
	return 4 + int64(int32(binary.BigEndian.Uint32(b))), true
}

// whole reports whether b begins with a frame, or with what can't be one.
func (s *Server) whole(b []byte) bool {
	size, ok := frameSize(b)
	return ok && (size <= int64(len(b)) || size > 4+int64(s.opts.MaxFrame))
}

// take puts the whole frames at the beginning of b on the connection's work list,
// which was read before the moment at, as many as it may have unanswered, and returns
// how many bytes they are.
func (s *Server) take(c *conn, b []byte, at time.Duration) (taken int) {
	room, bytes := s.opts.MaxOutstanding-c.waiting, int64(0)
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
		c.waiting += n
		c.pooled.requests += n
		c.pooled.bytes += bytes
		c.mu.Unlock()
		s.pool.requests.Add(int64(n))
		s.pool.bytes.Add(bytes)
	}
	return taken
}

// sendPolled is send for a polled connection.
func (s *Server) sendPolled(c *conn, b []byte, last bool) {
	p := &c.polled
	c.mu.Lock()
	over, queued := c.cut || c.finish, len(c.out)
	c.mu.Unlock()
	if over {
		return
	}
	if queued == 0 && !p.broken {
		n, err := s.poll.Load().write(int(p.fd), b)
		if b = b[n:]; err != nil && !errors.Is(err, errAgain) {
			s.breakOff(c)
		}
	}
	if p.broken {
		b = nil
	}
	if len(b) == 0 && !last {
		return // as nearly always
	}
	if queued > s.opts.MaxUnread {
		c.abort(errTooSlow)
		return
	}
	c.mu.Lock()
	c.out = append(c.out, b...)
	c.finish = last
	waits := last && len(c.out) > 0
	c.mu.Unlock()
	if last {
		c.endInput()
		s.later(c)
	}
	if waits {
		time.AfterFunc(closeGrace, func() { c.abort(nil) })
	}
}

// flush writes what a client did not take before.
func (s *Server) flush(c *conn) {
	c.mu.Lock()
	b := c.out
	c.out, c.writing = nil, len(b)
	c.mu.Unlock()
	n, err := s.poll.Load().write(int(c.polled.fd), b)
	broken := err != nil && !errors.Is(err, errAgain)
	c.mu.Lock()
	c.writing = 0
	if b = b[n:]; len(b) > 0 && !c.cut && !broken {
		c.out = b
	}
	resume := c.parked && len(c.out) < parkBytes || len(c.out) == 0 && c.finish
	if resume {
		c.parked = false
	}
	c.mu.Unlock()
	if broken {
		s.breakOff(c)
	} else if resume {
		s.later(c)
	}
}

// breakOff notes that nothing can be written any more. Reading tells why, and comes
// to the end. What is still to be written is dropped: kept, it would have the loop
// wait for somebody to take it.
func (s *Server) breakOff(c *conn) {
	p := &c.polled
	p.broken, p.hup, p.readable = true, true, true
	s.later(c)
}

// release closes a polled connection that has come to its end, if all was written
// that can be.
func (s *Server) release(c *conn, anyway bool) {
	l, p := &s.loop, &c.polled
	c.mu.Lock()
	fd := p.fd
	if fd < 0 || !anyway && !c.cut && !p.broken && len(c.out) > 0 {
		c.mu.Unlock()
		return
	}
	p.fd, c.cut, c.out = -1, true, nil
	c.mu.Unlock()
	closeSocket(int(fd))
	if int(p.slot) < len(l.slots) && l.slots[p.slot] == c {
		l.slots[p.slot] = nil
		l.free = append(l.free, p.slot)
		l.polls--
	}
	s.forget(c)
	s.handlers.Done()
}

// stopPolling ends the reading of all polled connections, for Shutdown.
func (s *Server) stopPolling() {
	for _, c := range s.loop.slots {
		if c != nil {
			c.endInput()
			s.later(c)
		}
	}
}

// endPolling closes what is left at the loop's end, and the poller.
func (s *Server) endPolling() {
	s.mu.Lock()
	s.ended, s.handed = true, nil
	_, conns := s.everything()
	s.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		mine := c.polled.on
		c.mu.Unlock()
		if mine {
			s.release(c, true)
		}
	}
	if p := s.poll.Load(); p != nil {
		p.close()
	}
}

// sleepPolling waits until there is something to do, with sockets to look at.
func (s *Server) sleepPolling() {
	p, ms := s.poll.Load(), s.patience()
	if ms != 0 {
		p.sleep(true)
	}
	// Whoever comes from here on sees that the loop sleeps.
	if s.tookWake() || cancelled(s.stop) {
		ms = 0
	}
	p.wait(ms, s.socketEvent)
	p.sleep(false)
	s.tookWake() // what it is about is looked at next
}

// glance reports whether anything came for the loop to do since it last looked.
func (s *Server) glance() bool {
	if s.loop.polls > 0 {
		s.poll.Load().wait(0, s.socketEvent)
	}
	return len(s.loop.again) > 0 || s.hasReady()
}

// tookWake reports whether the loop was to be woken.
func (s *Server) tookWake() bool {
	select {
	case <-s.wake:
		return true
	default:
		return false
	}
}

// patience is how many milliseconds the loop may sleep, -1 for without end.
func (s *Server) patience() int {
	l := &s.loop
	next, ok := l.tree.NextTick()
	switch {
	case len(l.again) > 0:
		return 0
	case ok:
		left := max(next, l.tickAfter) - s.elapsed()
		return int(min(max((left+time.Millisecond-1)/time.Millisecond, 0), 1<<30))
	}
	return -1
}

// socketEvent takes in what the poller tells.
func (s *Server) socketEvent(slot int, in, hup, out bool) {
	c := s.loop.slots[slot]
	if c == nil {
		return
	}
	if out && c.backlog() > 0 {
		s.flush(c)
	}
	if in && !c.readDone {
		c.polled.readable = true
		c.polled.hup = c.polled.hup || hup
		s.later(c)
	}
}
