package wal

import (
	"math"
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

// freeSpace returns how many bytes of the file system of f this process may use, and reports
// whether that is known.
func freeSpace(f *os.File) (free int64, known bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	var st unix.Statfs_t
	var serr error
	if err := conn.Control(func(fd uintptr) { serr = unix.Fstatfs(int(fd), &st) }); err != nil {
		return 0, false
	}
	if serr != nil {
		return 0, false
	}
	return usable(&st)
}

// usable returns the free space of a file system, and reports whether it is known. If nothing
// is left but what the file system reserves, for example for root, that counts: a process that
// may not use it has no space to lose.
func usable(st *unix.Statfs_t) (free int64, known bool) {
	size, blocks := uint64(st.Frsize), st.Bavail
	if size == 0 {
		size = uint64(st.Bsize)
	}
	// A file system without a size, such as a tmpfs without limit, has no blocks.
	if st.Blocks == 0 || size == 0 {
		return 0, false
	}
	if blocks == 0 {
		blocks = st.Bfree
	}
	return int64(min(blocks, math.MaxInt64/size) * size), true
}
