package wal

import (
	"os"
	"syscall"
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
