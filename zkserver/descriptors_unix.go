//go:build unix

package zkserver

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// leastReserved and mostReserved bound the descriptors that connections leave to the
// log, its snapshots, the certificates, the metrics, and the rest of the program.
const (
	leastReserved = 8
	mostReserved  = 128
)

// reserved reports whether a new descriptor is one of the last that the process may
// have: a new one is the lowest that is free, so all below it are in use.
func reserved(fd int) bool {
	limit := maxDescriptors()
	return limit >= 0 && int64(fd) >= limit-max(leastReserved, min(limit/8, mostReserved))
}

// takesReserved reports whether the descriptor of a connection that was just accepted
// is a reserved one.
func takesReserved(nc net.Conn) bool {
	sc, ok := below(nc).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false // it has ended
	}
	last := false
	_ = raw.Control(func(fd uintptr) { last = reserved(int(fd)) }) // the same
	return last
}

// outOfMemory reports whether a call to the system failed because the kernel has no
// memory for a socket at the moment.
func outOfMemory(err error) bool {
	return errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// openDescriptors is how many files and sockets the process has open, -1 where
// the system has no list of them.
func openDescriptors() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if names, err := os.ReadDir(dir); err == nil {
			return len(names) - 1 // the directory itself
		}
	}
	return -1
}

// maxDescriptors is how many it may have, -1 if that is unknown.
func maxDescriptors() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return -1
	}
	return int64(min(uint64(limit.Cur), 1<<62))
}
