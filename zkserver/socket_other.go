//go:build !unix

package zkserver

import "net"

// socket is unused on this system, where a socket cannot be written to without blocking.
type socket struct{}

func plainSocket(net.Conn) any { return nil }

func newSocket(net.Conn) *socket { return nil }

func (*socket) write([]byte) int { return 0 }
