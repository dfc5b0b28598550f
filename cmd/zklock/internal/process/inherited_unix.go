//go:build unix

package process

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// This file handles the descriptors that a process inherited, in addition to the standard
// three. A process that outlives its parent must close them: otherwise a reader that waits
// for their end, such as $(...), waits forever.

// maxDescriptors limits the search on systems that list no descriptors.
const maxDescriptors = 4096

// CloseInherited closes all inherited descriptors except the standard ones and keep. An
// inherited descriptor has no close-on-exec flag; all descriptors that Go opens have it.
func CloseInherited(keep ...int) {
	for _, fd := range candidates() {
		if fd > 2 && !slices.Contains(keep, fd) && Inherited(fd) {
			_ = unix.Close(fd) // a failure cannot be handled
		}
	}
}

// InheritedFiles returns the inherited descriptors of the regular files with these names. The
// file of a descriptor can be read again from its beginning, unlike a pipe.
func InheritedFiles(names []string) (fds []int) {
	var files []unix.Stat_t
	for _, name := range names {
		var info unix.Stat_t
		if unix.Stat(name, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFREG {
			files = append(files, info)
		}
	}
	if len(files) == 0 {
		return nil
	}
	for _, fd := range candidates() {
		var info unix.Stat_t
		if !Inherited(fd) || unix.Fstat(fd, &info) != nil {
			continue
		}
		same := func(f unix.Stat_t) bool { return f.Dev == info.Dev && f.Ino == info.Ino }
		if slices.ContainsFunc(files, same) {
			fds = append(fds, fd)
		}
	}
	return fds
}

// CloseOnExec prevents that processes inherit fd.
func CloseOnExec(fd int) { unix.CloseOnExec(fd) }

// Inherited reports whether fd is open and was inherited.
func Inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// candidates returns the descriptors that may be open.
func candidates() []int {
	var fds []int
	entries, err := os.ReadDir("/dev/fd")
	if err != nil || len(entries) == 0 {
		for fd := range maxDescriptors {
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
