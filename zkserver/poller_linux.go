package zkserver

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// pollEvents is how many sockets one call tells of.
	pollEvents = 256
	// pollBuffer is what one read takes.
	pollBuffer = 64 << 10
	// pollWake is the slot of what wakes a wait.
	pollWake = -1
)

// poller waits for many sockets at once, so that a connection needs no goroutine.
// It is for the loop, but for wake.
//
// The sockets are not those of Go's own poller, which would be woken for every
// packet beside this one. Its calls that can't wait are not announced to Go's
// scheduler.
type poller struct {
	epoll    int
	sleeping atomic.Bool // the loop is in wait, or about to be
	events   [pollEvents]unix.EpollEvent
	buf      [pollBuffer]byte

	mu    sync.Mutex
	event int // the eventfd that wakes a wait, -1 once closed
}

// newPoller returns a poller that must be closed.
func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, err
	}
	p := &poller{epoll: epoll, event: event}
	if err := p.add(event, pollWake, unix.EPOLLIN); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	unix.Close(p.event)
	unix.Close(p.epoll)
	p.event = -1
}

// wake ends a wait, from any goroutine. Whoever calls it has left word before of
// what there is to do.
func (p *poller) wake() {
	if !p.sleeping.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.event >= 0 {
		one := [8]byte{1}
		// An error is one of a counter that is full: it wakes as well.
		_, _ = unix.Write(p.event, one[:])
	}
}

// sleep says that the loop is about to wait, or no longer does.
func (p *poller) sleep(on bool) { p.sleeping.Store(on) }

func (p *poller) add(fd, slot int, events uint32) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(slot)})
}

// watch has wait tell of a socket under the number slot, each time that something
// changes. Closing the socket ends that.
func (p *poller) watch(fd, slot int) error {
	return p.add(fd, slot, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET)
}

// wait waits for up to ms milliseconds, without end below 0, and tells of the
// sockets that can be read, have come to their end, or can be written.
func (p *poller) wait(ms int, tell func(slot int, in, hup, out bool)) {
	for {
		n, err := p.poll(ms)
		if err != nil {
			return // a signal: the loop comes back
		}
		for _, e := range p.events[:n] {
			if e.Fd == pollWake {
				var count [8]byte
				_, _ = unix.Read(p.event, count[:]) // nothing to read is what is wanted
				continue
			}
			const end = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
			tell(int(e.Fd), e.Events&(unix.EPOLLIN|end) != 0, e.Events&end != 0, e.Events&unix.EPOLLOUT != 0)
		}
		if n < pollEvents {
			return
		}
		ms = 0
	}
}

// poll is one call.
func (p *poller) poll(ms int) (int, error) {
	if ms != 0 {
		return unix.EpollWait(p.epoll, p.events[:], ms)
	}
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), pollEvents, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// read reads what is there, up to size bytes, into a buffer of the poller's. Less
// than that means that there is no more at the moment.
func (p *poller) read(fd, size int) ([]byte, error) {
	n, err := transfer(syscall.SYS_RECVFROM, fd, p.buf[:min(size, len(p.buf))])
	return p.buf[:n], err
}

// write writes as much of b as the socket takes.
func (p *poller) write(fd int, b []byte) (int, error) {
	return transfer(syscall.SYS_SENDTO, fd, b)
}

// transfer reads or writes without ever waiting. That nothing can be done at the
// moment is errAgain.
func transfer(call uintptr, fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	for {
		n, _, errno := syscall.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, errAgain
		default:
			return 0, errno
		}
	}
}

// plainCongestion is the congestion control that every kernel has.
const plainCongestion = "reno"

// takeSocket returns a second descriptor of a connection's socket, which lives on
// when the connection is closed.
//
// Within this machine there is no path that could be congested: the plainest control
// spares the rates and timers that others keep, of which BBR's take a tenth of a
// request's time.
func takeSocket(nc net.Conn) (int, error) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return -1, syscall.ENOTSOCK
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	taken := -1
	var derr error
	if err := raw.Control(func(fd uintptr) { taken, derr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	if derr == nil && reserved(taken) {
		// The connection keeps the one that it has, or the next ones would be accepted
		// with the numbers that these give up until there is no other.
		closeSocket(taken)
		return -1, syscall.EMFILE
	}
	if addr, ok := nc.RemoteAddr().(*net.TCPAddr); ok && derr == nil && addr.IP.IsLoopback() {
		_ = unix.SetsockoptString(taken, unix.IPPROTO_TCP, unix.TCP_CONGESTION, plainCongestion) // any other does as well
	}
	return taken, derr
}

// cutSocket ends a connection in both directions and leaves its descriptor open.
func cutSocket(fd int) {
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // the peer may have done so
}

func closeSocket(fd int) { _ = unix.Close(fd) }
