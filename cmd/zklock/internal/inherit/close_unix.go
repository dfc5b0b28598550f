//go:build unix

// Package inherit deals with the files that a process was started with beyond
// the standard three. A process that outlives its parent must let go of them,
// or whoever waits for their end waits for ever, as $(...) does.
package inherit

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// most bounds the search where the system lists no descriptors.
const most = 4096

// Close closes every inherited descriptor above the standard ones but keep. An
// inherited descriptor is known by its missing close-on-exec flag: with the
// flag it would not be here, and all that Go opens by itself has it.
func Close(keep ...int) {
	for _, fd := range candidates() {
		if fd > 2 && !contains(keep, fd) && Inherited(fd) {
			_ = unix.Close(fd) // nothing can be done about a failure
		}
	}
}

// Mark makes fd one that this process does not hand on.
func Mark(fd int) { unix.CloseOnExec(fd) }

// Inherited reports whether fd is open and came through an exec.
func Inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// candidates lists descriptors that may be open.
func candidates() []int {
	var fds []int
	entries, err := os.ReadDir("/dev/fd")
	if err != nil || len(entries) == 0 {
		for fd := range most {
			fds = append(fds, fd)
		}
		return fds
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			fds = append(fds, fd)
		}
	}
	return fds
}

func contains(fds []int, fd int) bool {
	for _, f := range fds {
		if f == fd {
			return true
		}
	}
	return false
}
