package load

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

// The system calls of a measurement. They do not tell the Go runtime that they block. If
// they did, the runtime would spend a sixth of the load generator's time on passing the
// processor on and taking it back, and the servers would lose that time. No other goroutine
// runs during a measurement. If the runtime needs the thread, its signal interrupts a wait.

// receive reads the available bytes without waiting.
func receive(fd int, b []byte) (int, error) {
	return call(syscall.SYS_RECVFROM, fd, b)
}

// send writes as much of b as the socket accepts, without waiting.
func send(fd int, b []byte) (int, error) {
	return call(syscall.SYS_SENDTO, fd, b)
}

// call makes one of the two system calls, without an address.
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

// await waits up to ms milliseconds for readable sockets, and returns the number of events. Zero
// without an error means that the time is over.
func await(epoll int, events []syscall.EpollEvent, ms int) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(ms), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// interrupted reports whether a signal ended a wait.
func interrupted(err error) bool { return errors.Is(err, syscall.EINTR) }
