//go:build unix

package zkserver

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// minReserved and maxReserved bound the descriptors that connections leave for the log, its
// snapshots, the certificates, the metrics, and the rest of the program.
const (
	minReserved = 8
	maxReserved = 128
)

// reserved reports whether a new descriptor is one of the last that the process may open.
// The system assigns the lowest free number, so all numbers below fd are in use.
func reserved(fd int) bool {
	limit := maxDescriptors()
	return limit >= 0 && int64(fd) >= limit-max(minReserved, min(limit/8, maxReserved))
}

// takesReserved reports whether the descriptor of a newly accepted connection is reserved.
func takesReserved(nc net.Conn) bool {
	sc, ok := rawConn(nc).(syscall.Conn)
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

// outOfMemory reports whether a system call failed because the kernel has no memory for a
// socket now.
func outOfMemory(err error) bool {
	return errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// openDescriptors returns how many files and sockets the process has open, or -1 if the
// system does not list them.
func openDescriptors() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if names, err := os.ReadDir(dir); err == nil {
			return len(names) - 1 // minus the directory itself
		}
	}
	return -1
}

// maxDescriptors returns how many descriptors the process may open, or -1 if that is
// unknown.
func maxDescriptors() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return -1
	}
	return int64(min(uint64(limit.Cur), 1<<62))
}
