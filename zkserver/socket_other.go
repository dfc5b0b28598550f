//go:build !unix

package zkserver

import "net"

// socket is for systems whose sockets can be written to without waiting.
type socket struct{}

func plainSocket(net.Conn) any { return nil }

func newSocket(net.Conn) *socket { return nil }

func (*socket) write([]byte) int { return 0 }
