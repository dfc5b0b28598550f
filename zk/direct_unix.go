//go:build unix

package zk

import (
	"net"
	"syscall"
)

// directOf returns what writes to a connection without waiting, or nil. Connections of
// other types may change what is written.
func directOf(conn net.Conn) syscall.RawConn {
	var raw syscall.RawConn
	var err error
	switch conn := conn.(type) {
	case *net.TCPConn:
		raw, err = conn.SyscallConn()
	case *net.UnixConn:
		raw, err = conn.SyscallConn()
	}
	if err != nil {
		return nil
	}
	return raw
}

// writeNow writes as much as the connection takes at this moment, and returns how much.
func writeNow(raw syscall.RawConn, b []byte) (n int) {
	// An error leaves n small: the next write gets it again.
	_ = raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), b)
		return true
	})
	return max(n, 0)
}
