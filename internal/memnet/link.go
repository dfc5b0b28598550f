package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferSize is how many bytes may be in flight in one direction before a write
// waits: about the size of a socket buffer.
const bufferSize = 64 << 10

// link is the shared state of the two ends of a connection. One mutex guards both
// directions, because closing one end closes both.
type link struct {
	mu    sync.Mutex
	flows [2]flow // flows[i] is the direction in which end i sends
	reset bool
}

// flow is one direction. The link's mutex guards all fields.
type flow struct {
	buf      []byte // bytes sent and not yet read, from off
	off      int
	sendDone bool // the sender closed: the stream ends after buf
	readDone bool // the receiver closed: writes fail

	readable sync.Cond // signaled when the reader may continue
	writable sync.Cond // signaled when the writer may continue
	readBy   deadline
	writeBy  deadline
}

// newLink returns a link with nothing in flight. Its conditions belong to the
// synctest bubble that waits on them.
func newLink() *link {
	l := &link{}
	for i := range l.flows {
		f := &l.flows[i]
		f.readable.L, f.writable.L = &l.mu, &l.mu
	}
	return l
}

// wake wakes all goroutines that wait on the flow.
func (f *flow) wake() {
	f.readable.Broadcast()
	f.writable.Broadcast()
}

// read reads bytes that end from has sent.
func (l *link) read(from int, p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.flows[from]
	for {
		switch {
		// The order is TCP's: this end's own close, then a reset, then the deadline,
		// then data, then the end of the stream.
		case f.readDone:
			return 0, net.ErrClosed
		case l.reset:
			return 0, syscall.ECONNRESET
		case f.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case f.off < len(f.buf):
			n := copy(p, f.buf[f.off:])
			f.consume(n)
			return n, nil
		case f.sendDone:
			return 0, io.EOF
		}
		f.readable.Wait()
	}
}

// consume drops n bytes from the front.
func (f *flow) consume(n int) {
	f.off += n
	if f.off == len(f.buf) {
		f.buf, f.off = f.buf[:0], 0
	}
	f.writable.Broadcast()
}

// free returns how many more bytes the buffer accepts.
func (f *flow) free() int { return bufferSize - (len(f.buf) - f.off) }

// push appends as much of p as fits.
func (f *flow) push(p []byte) int {
	n := min(len(p), f.free())
	// The bytes are moved down instead of growing the buffer, which stays within its
	// limit.
	if f.off > 0 && len(f.buf)+n > cap(f.buf) {
		f.buf = f.buf[:copy(f.buf, f.buf[f.off:])]
		f.off = 0
	}
	f.buf = append(f.buf, p[:n]...)
	f.readable.Broadcast()
	return n
}

// write sends p as end from.
func (l *link) write(from int, p []byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.flows[from]
	for {
		switch {
		case f.sendDone:
			return n, net.ErrClosed
		case l.reset:
			return n, syscall.ECONNRESET
		case f.readDone:
			return n, syscall.EPIPE
		case f.writeBy.passed:
			return n, os.ErrDeadlineExceeded
		}
		n += f.push(p[n:])
		if n == len(p) {
			return n, nil
		}
		f.writable.Wait()
	}
}

// close closes end i: its peer reads what was sent, then the end of the stream.
func (l *link) close(i int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	out, in := &l.flows[i], &l.flows[1-i]
	if in.readDone {
		return net.ErrClosed
	}
	out.sendDone, in.readDone = true, true
	// Timers of a closed end would keep the clock of a synctest bubble running.
	out.writeBy.stop()
	in.readBy.stop()
	out.wake()
	in.wake()
	return nil
}

// closeWrite closes the direction in which end i sends.
func (l *link) closeWrite(i int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.flows[i]
	if f.sendDone {
		return net.ErrClosed
	}
	f.sendDone = true
	f.wake()
	return nil
}

// abort resets the connection: both ends fail at once, and the bytes in flight are lost.
func (l *link) abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reset = true
	for i := range l.flows {
		f := &l.flows[i]
		f.buf, f.off = nil, 0
		f.readBy.stop()
		f.writeBy.stop()
		f.wake()
	}
}

// deadline is the time after which one kind of call fails.
type deadline struct {
	passed bool
	timer  *time.Timer
}

// stop stops the timer. If its function is already running, it finds that the timer
// was replaced.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// setDeadline sets one deadline of a flow. cond is signaled when the deadline passes,
// and done says whether that end is closed. The zero time means no deadline.
func (l *link) setDeadline(d *deadline, cond *sync.Cond, done *bool, t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *done {
		return net.ErrClosed
	}
	d.stop()
	d.passed = false
	if t.IsZero() {
		return nil
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.passed = true
		cond.Broadcast()
		return nil
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if d.timer == timer {
			d.passed = true
			cond.Broadcast()
		}
	})
	d.timer = timer
	return nil
}
