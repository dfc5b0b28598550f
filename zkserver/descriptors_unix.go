//go:build unix

package zkserver

import (
	"os"
	"syscall"
)

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
