package load

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

// The calls of a measurement. They keep the processor, in Go's sense, also while
// they wait: a runtime that is told of each of them would spend a sixth of the
// load generator's time on taking the processor away and giving it back, and that
// is time which the servers do not get. Nothing else runs in a measurement; where
// the runtime needs the thread all the same, its signal ends a wait.

// receive reads what is there, without waiting.
func receive(fd int, b []byte) (int, error) {
	return call(syscall.SYS_RECVFROM, fd, b)
}

// send writes as much of b as the socket takes, without waiting.
func send(fd int, b []byte) (int, error) {
	return call(syscall.SYS_SENDTO, fd, b)
}

// call does one of the two on a socket, with no address.
func call(number uintptr, fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, fmt.Errorf("load: %w: no bytes", syscall.EINVAL)
	}
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	for {
		n, _, errno := syscall.RawSyscall6(number, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// await waits for sockets that can be read, for a number of milliseconds, and
// returns how many of events it filled. Zero and an error that is EINTR are to be
// told apart: only the former means that the time is over.
func await(epoll int, events []syscall.EpollEvent, ms int) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(ms), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// interrupted reports whether a wait ended by a signal.
func interrupted(err error) bool { return errors.Is(err, syscall.EINTR) }
