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
	// pollEvents is how many events one call returns.
	pollEvents = 256
	// pollBuffer is the size of one read.
	pollBuffer = 64 << 10
	// wakeSlot is the slot of the eventfd that ends a wait.
	wakeSlot = -1
)

// poller waits for many sockets at once, so that a connection needs no goroutine. Only the
// loop uses it, except wake.
//
// The sockets are not in Go's own poller, which would also wake for every packet. Calls
// that cannot block are not announced to Go's scheduler.
type poller struct {
	epoll    int
	sleeping atomic.Bool // the loop is in wait, or about to call it
	events   [pollEvents]unix.EpollEvent
	buf      [pollBuffer]byte

	mu    sync.Mutex
	event int // the eventfd that ends a wait, -1 once closed
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
	if err := p.add(event, wakeSlot, unix.EPOLLIN); err != nil {
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

// wake ends a wait. Any goroutine may call it, after it has recorded the work for the loop.
func (p *poller) wake() {
	if !p.sleeping.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.event >= 0 {
		one := [8]byte{1}
		// It fails only if the counter is full: then the wait also ends.
		_, _ = unix.Write(p.event, one[:])
	}
}

// setSleeping records that the loop is about to wait, or no longer waits.
func (p *poller) setSleeping(on bool) { p.sleeping.Store(on) }

func (p *poller) add(fd, slot int, events uint32) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(slot)})
}

// watch lets wait report each change of a socket, with the number slot. Closing the socket
// ends this.
func (p *poller) watch(fd, slot int) error {
	return p.add(fd, slot, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET)
}

// wait waits for up to ms milliseconds, or without limit if ms is negative. It calls tell
// for each socket that is readable, has ended, or is writable.
func (p *poller) wait(ms int, tell func(slot int, in, hup, out bool)) {
	for {
		n, err := p.poll(ms)
		if err != nil {
			return // a signal: the loop waits again
		}
		for _, e := range p.events[:n] {
			if e.Fd == wakeSlot {
				var count [8]byte
				_, _ = unix.Read(p.event, count[:]) // it may be empty already
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

// poll calls epoll once.
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

// read reads up to size available bytes into a buffer of the poller. Fewer bytes mean that
// no more are available now.
func (p *poller) read(fd, size int) ([]byte, error) {
	n, err := transfer(syscall.SYS_RECVFROM, fd, p.buf[:min(size, len(p.buf))], 0)
	return p.buf[:n], err
}

// peek copies up to len(b) available bytes to b. They are still read afterwards.
func (*poller) peek(fd int, b []byte) (int, error) {
	return transfer(syscall.SYS_RECVFROM, fd, b, syscall.MSG_PEEK)
}

// write writes as much of b as the socket takes.
func (p *poller) write(fd int, b []byte) (int, error) {
	return transfer(syscall.SYS_SENDTO, fd, b, 0)
}

// transfer reads or writes without blocking. If nothing can be transferred now, it returns
// errAgain.
func transfer(call uintptr, fd int, b []byte, flags uintptr) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	flags |= syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
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

// takeSocket returns a second descriptor of a connection's socket, which stays open when
// the connection is closed.
//
// Within this machine no path can be congested. The simplest congestion control avoids the
// rates and timers of others; BBR's take a tenth of a request's time.
func takeSocket(nc net.Conn) (int, error) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return -1, syscall.ENOTSOCK
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	dup := -1
	var derr error
	if err := raw.Control(func(fd uintptr) { dup, derr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	if derr == nil && reserved(dup) {
		// The connection keeps its own descriptor. Otherwise new connections would be
		// accepted with the numbers freed here, until no descriptor is left.
		closeSocket(dup)
		return -1, syscall.EMFILE
	}
	if addr, ok := nc.RemoteAddr().(*net.TCPAddr); ok && derr == nil && addr.IP.IsLoopback() {
		_ = unix.SetsockoptString(dup, unix.IPPROTO_TCP, unix.TCP_CONGESTION, plainCongestion) // any other control also works
	}
	return dup, derr
}

// cutSocket shuts a connection down in both directions and leaves its descriptor open.
func cutSocket(fd int) {
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // the client may have done so
}

func closeSocket(fd int) { _ = unix.Close(fd) }
