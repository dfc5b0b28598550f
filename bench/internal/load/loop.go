package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// silence is the longest time without an answer in a measurement.
const silence = 30 * time.Second

// readSize is the size of one read: larger than any answer of a measurement.
const readSize = 64 << 10

// A Job is the work of the clients in a measurement.
type Job interface {
	// Next appends the client's next request. If last is true, the job ends: Next returns
	// false when the client has no further request.
	Next(client int, xid int32, last bool, b []byte) ([]byte, bool)
	// Check checks the header and body of an answer or an event. An event has the xid -1,
	// and no request follows it.
	Check(client int, h wire.ReplyHeader, body []byte) error
}

// A Group is a number of sessions that do a job together on one thread. It must be used by
// one goroutine only.
type Group struct {
	members []*member
	epoll   int
	events  [128]syscall.EpollEvent
	buf     []byte
}

// member is one session of a group.
type member struct {
	client  *Client
	file    *os.File // the socket, blocking
	fd      int
	partial []byte // the beginning of a frame
	out     []byte
	xid     int32
	sent    time.Time
	busy    bool
}

// A Result is the outcome of a measurement.
type Result struct {
	Requests int
	Took     time.Duration
	// Latencies are those of all requests, ascending.
	Latencies []time.Duration
}

// Rate returns the requests per second.
func (r Result) Rate() float64 { return float64(r.Requests) / r.Took.Seconds() }

// Percentile returns the latency that the fraction p (0 to 1) of the requests did not
// exceed.
func (r Result) Percentile(p float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(int(p*float64(len(r.Latencies))), len(r.Latencies)-1)]
}

// Open opens n sessions with the server at addr.
func Open(addr string, n int) (*Group, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("load: epoll: %w", err)
	}
	g := &Group{epoll: epoll, buf: make([]byte, readSize)}
	for range n {
		if err := g.add(addr); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// add opens one more session.
func (g *Group) add(addr string) error {
	c, err := Dial(addr)
	if err != nil {
		return err
	}
	file, err := c.nc.(*net.TCPConn).File()
	if err != nil {
		c.nc.Close()
		return fmt.Errorf("load: %w", err)
	}
	// Remove the socket from the runtime's poller, which would also wake up for every
	// answer.
	c.nc.Close()
	m := &member{client: c, file: file, fd: int(file.Fd())}
	// On loopback, "reno" costs the load generator less processor time, which the server
	// then gets.
	if err := syscall.SetsockoptString(m.fd, syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, "reno"); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	g.members = append(g.members, m)
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(len(g.members) - 1)}
	if err := syscall.EpollCtl(g.epoll, syscall.EPOLL_CTL_ADD, m.fd, &event); err != nil {
		return fmt.Errorf("load: epoll: %w", err)
	}
	return nil
}

// Size returns the number of sessions.
func (g *Group) Size() int { return len(g.members) }

// Close ends all sessions.
func (g *Group) Close() error {
	errs := []error{syscall.Close(g.epoll)}
	for _, m := range g.members {
		// Later calls continue the numbering: the server does not check it, but this client
		// could not distinguish two answers with the same number.
		m.client.xid = m.xid
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}

// close ends the session on the socket, which the runtime's poller handles again.
func (m *member) close() error {
	defer m.file.Close()
	nc, err := net.FileConn(m.file)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	m.client.nc = nc
	m.client.br.Reset(nc)
	return m.client.Close()
}

// Run makes every client do the job for the time d and then complete it. It measures until
// the last answer.
func (g *Group) Run(job Job, d time.Duration) (Result, error) {
	r := run{Group: g, job: job, begin: time.Now(), d: d}
	for i, m := range g.members {
		if err := r.next(i, m, false); err != nil {
			return Result{}, err
		}
	}
	for r.busy > 0 {
		if err := r.wait(); err != nil {
			return Result{}, err
		}
	}
	res := Result{Requests: len(r.latencies), Took: time.Since(r.begin), Latencies: r.latencies}
	slices.Sort(res.Latencies)
	return res, nil
}

// RunUntil sends what Next returns with last set, and measures until done returns true, for
// jobs that end with an event instead of an answer.
func (g *Group) RunUntil(job Job, done func() bool) (time.Duration, error) {
	r := run{Group: g, job: job, begin: time.Now()}
	for i, m := range g.members {
		if err := r.next(i, m, true); err != nil {
			return 0, err
		}
	}
	for r.busy > 0 || !done() {
		if err := r.wait(); err != nil {
			return 0, err
		}
	}
	return time.Since(r.begin), nil
}

// run is one measurement.
type run struct {
	*Group
	job       Job
	begin     time.Time
	d         time.Duration
	busy      int // clients with a request in flight
	latencies []time.Duration
}

// next sends a client's next request, or counts the client as idle if it has none.
func (r *run) next(i int, m *member, last bool) error {
	var more bool
	m.out, more = r.job.Next(i, m.xid+1, last, m.out[:0])
	if more != m.busy {
		m.busy = more
		if more {
			r.busy++
		} else {
			r.busy--
		}
	}
	if !more {
		return nil
	}
	m.xid++
	m.sent = time.Now()
	// One small request always fits into an empty socket buffer.
	if n, err := send(m.fd, m.out); err != nil || n < len(m.out) {
		return fmt.Errorf("load: %d of %d bytes written: %w", n, len(m.out), err)
	}
	return nil
}

// wait waits for answers and events, and handles them.
func (r *run) wait() error {
	n, err := await(r.epoll, r.events[:], int(silence.Milliseconds()))
	if interrupted(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load: epoll: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("%w: none for %v, %d clients wait", ErrAnswer, silence, r.busy)
	}
	for _, e := range r.events[:n] {
		if err := r.read(int(e.Fd)); err != nil {
			return err
		}
	}
	return nil
}

// read reads the available bytes of one client.
func (r *run) read(i int) error {
	m := r.members[i]
	n, err := receive(m.fd, r.buf)
	if errors.Is(err, syscall.EAGAIN) {
		return nil
	}
	if n <= 0 {
		return fmt.Errorf("load: the server closed a connection: %w", errors.Join(err, ErrAnswer))
	}
	in := r.buf[:n]
	if len(m.partial) > 0 {
		in = append(m.partial, in...)
	}
	for len(in) >= 4 {
		size := int(binary.BigEndian.Uint32(in))
		if len(in)-4 < size {
			break
		}
		if err := r.frame(i, m, in[4:4+size]); err != nil {
			return err
		}
		in = in[4+size:]
	}
	m.partial = append(m.partial[:0], in...)
	return nil
}

// frame handles one answer or event.
func (r *run) frame(i int, m *member, body []byte) error {
	h, _, err := header(body)
	if err != nil {
		return err
	}
	const headerSize = 16
	if err := r.job.Check(i, h, body[headerSize:]); err != nil {
		return err
	}
	if h.Xid == wire.XidEvent {
		return nil
	}
	if h.Xid != m.xid || !m.busy {
		return fmt.Errorf("%w: to request %d, not %d", ErrAnswer, h.Xid, m.xid)
	}
	now := time.Now()
	r.latencies = append(r.latencies, now.Sub(m.sent))
	return r.next(i, m, now.Sub(r.begin) >= r.d)
}
