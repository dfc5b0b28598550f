//go:build unix

package zkserver

import (
	"net"
	"syscall"
)

// socket writes to a connection's socket without blocking. One goroutine at a time may use
// it, and none may be in the connection's Write meanwhile.
type socket struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // the function that write passes to raw.Write, created once: a write costs no allocation
	buf []byte
	n   int
}

// plainSocket returns nc if it is a plain socket, and nil otherwise: data for TLS must not
// bypass it.
func plainSocket(nc net.Conn) syscall.Conn {
	switch c := nc.(type) {
	case *net.TCPConn:
		return c
	case *net.UnixConn:
		return c
	}
	return nil
}

// newSocket returns the socket of a plain connection, and nil for others.
func newSocket(nc net.Conn) *socket {
	sc := plainSocket(nc)
	if sc == nil {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socket{raw: raw}
	s.try = func(fd uintptr) bool {
		for {
			n, err := syscall.Write(int(fd), s.buf)
			if err != syscall.EINTR {
				s.n = max(n, 0)
				return true
			}
		}
	}
	return s
}

// write writes as much of b as fits and returns how many bytes that is. The writer finds
// and reports an error when it writes the rest.
func (s *socket) write(b []byte) int {
	s.buf, s.n = b, 0
	// It fails because of a deadline or a closed connection, with n at 0.
	_ = s.raw.Write(s.try)
	s.buf = nil
	return s.n
}
