package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferSize is how many bytes of one direction may be under way before a
// write waits: about what a socket's buffer takes.
const bufferSize = 64 << 10

// link is what the two ends of a connection share: one mutex over both
// directions, since an end that closes ends both.
type link struct {
	mu    sync.Mutex
	flows [2]flow // flows[i] is what end i sends
	reset bool
}

// flow is one direction. All fields are guarded by the link's mutex.
type flow struct {
	buf      []byte // sent and not yet read, from off on
	off      int
	paused   bool // what is in buf, and the end, does not arrive
	sendDone bool // the sender closed: the end after buf
	readDone bool // the receiver closed: writes fail once it is known

	readable sync.Cond // the reader may find something new
	writable sync.Cond // the writer may
	readBy   deadline
	writeBy  deadline
}

// newLink makes a connection with nothing under way. The conditions belong to
// the synctest bubble that waits on them, whoever makes them.
func newLink() *link {
	l := &link{}
	for i := range l.flows {
		f := &l.flows[i]
		f.readable.L, f.writable.L = &l.mu, &l.mu
	}
	return l
}

// wake lets everybody who waits on the flow look again.
func (f *flow) wake() {
	f.readable.Broadcast()
	f.writable.Broadcast()
}

// read takes bytes that end from has sent.
func (l *link) read(from int, p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.flows[from]
	for {
		switch {
		// The order is TCP's: this end's own close, then a reset, then the
		// deadline, which goes before data, then data before the end.
		case f.readDone:
			return 0, net.ErrClosed
		case l.reset:
			return 0, syscall.ECONNRESET
		case f.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case !f.paused && f.off < len(f.buf):
			n := copy(p, f.buf[f.off:])
			f.consume(n)
			return n, nil
		case !f.paused && f.sendDone:
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

// room is how many more bytes the buffer takes.
func (f *flow) room() int { return bufferSize - (len(f.buf) - f.off) }

// push adds as much of p as there is room for.
func (f *flow) push(p []byte) int {
	n := min(len(p), f.room())
	// Moved down rather than grown: the buffer stays within its bound.
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
	f, back := &l.flows[from], &l.flows[1-from]
	for {
		switch {
		case f.sendDone:
			return n, net.ErrClosed
		case l.reset:
			return n, syscall.ECONNRESET
		case f.readDone && !back.paused:
			// The news that the peer closed comes on the way back.
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

// close closes end i: its peer reads what was sent, then the end.
func (l *link) close(i int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	out, in := &l.flows[i], &l.flows[1-i]
	if in.readDone {
		return net.ErrClosed
	}
	out.sendDone, in.readDone = true, true
	// Timers of a closed end would keep a synctest bubble's clock going.
	out.writeBy.stop()
	in.readBy.stop()
	out.wake()
	in.wake()
	return nil
}

// closeWrite ends what end i sends.
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

// abort resets the connection: both ends fail at once, what is under way is
// lost, pauses do not matter.
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

// pause stops or lets go what end i sends.
func (l *link) pause(i int, paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flows[i].paused = paused
	// The other flow's writer may learn of a close by this one.
	l.flows[i].wake()
	l.flows[1-i].wake()
}

// deadline is a point in time after which one kind of call fails.
type deadline struct {
	passed bool
	timer  *time.Timer
}

// stop ends the timer. A function of it that is on its way finds that it is
// no longer the flow's.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// setDeadline sets one deadline of a flow; cond is whom it concerns, done
// whether that end is closed. The zero time means none. The timer's function
// ends by itself.
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
