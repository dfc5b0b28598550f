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
	return control(f, "fdatasync", func(fd int) error {
		err := syscall.Fdatasync(fd)
		// An interrupted call has not failed: no data was dropped.
		for err == syscall.EINTR {
			err = syscall.Fdatasync(fd)
		}
		return err
	})
}

// control calls op, which is named name, with the descriptor of f.
func control(f *os.File, name string, op func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var operr error
	if err := conn.Control(func(fd uintptr) { operr = op(int(fd)) }); err != nil {
		return err
	}
	if operr != nil {
		return &os.PathError{Op: name, Path: f.Name(), Err: operr}
	}
	return nil
}

// dropCache drops the clean pages of a file from the page cache, so that reads show
// what is on the disk.
func dropCache(f *os.File) error {
	return control(f, "fadvise", func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
}

// freeSpace returns how many bytes of the file system of f this process may use, and reports
// whether that is known.
func freeSpace(f *os.File) (free int64, known bool) {
	var st unix.Statfs_t
	if err := control(f, "statfs", func(fd int) error { return unix.Fstatfs(fd, &st) }); err != nil {
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
