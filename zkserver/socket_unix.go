//go:build unix

package zkserver

import (
	"net"
	"syscall"
)

// socket writes to a connection's socket without ever waiting. It is for one
// goroutine at a time, and not while another one is in the connection's Write.
type socket struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // write's inner part, made once: a write costs no allocation
	buf []byte
	n   int
}

// plainSocket returns a connection that is nothing but a socket, and nil for
// others: what goes through TLS must not go past it.
func plainSocket(nc net.Conn) syscall.Conn {
	switch c := nc.(type) {
	case *net.TCPConn:
		return c
	case *net.UnixConn:
		return c
	}
	return nil
}

// newSocket returns the socket of a connection that is nothing but one, and nil
// for others.
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

// write writes as much of b as fits and returns how much that is. What is wrong
// with the connection is found out by whoever writes the rest.
func (s *socket) write(b []byte) int {
	s.buf, s.n = b, 0
	// An error is one of the deadline or of a closed connection, with n at 0.
	_ = s.raw.Write(s.try)
	s.buf = nil
	return s.n
}
