package wal

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fdatasync makes content and length durable but not times and the like,
// which spares the journal a commit per call.
func fdatasync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = conn.Control(func(fd uintptr) {
		serr = syscall.Fdatasync(int(fd))
		// An interrupted call has not failed: nothing was given up yet.
		for serr == syscall.EINTR {
			serr = syscall.Fdatasync(int(fd))
		}
	})
	if err != nil {
		return err
	}
	if serr != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: serr}
	}
	return nil
}

// dropCache lets go of the pages of a file that are clean, so that reading it
// shows what is on the disk.
func dropCache(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var aerr error
	if err := conn.Control(func(fd uintptr) { aerr = unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED) }); err != nil {
		return err
	}
	return aerr
}
