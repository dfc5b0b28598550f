package wal

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fdatasync makes content and length durable, but not times and similar metadata.
// That avoids one journal commit per call.
func fdatasync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = conn.Control(func(fd uintptr) {
		serr = syscall.Fdatasync(int(fd))
		// An interrupted call has not failed: no data was dropped.
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

// dropCache drops the clean pages of a file from the page cache, so that reads show
// what is on the disk.
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
