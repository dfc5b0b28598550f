package ownership

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// An entry is a file, a directory, or a link that resolve has reached. It is open, so no other user
// can exchange it for another one.
type entry struct {
	path string // without links
	info fs.FileInfo
	file *os.File // permits no reads
}

// rootDir returns the root directory.
func rootDir() (*entry, error) { return openEntry(unix.AT_FDCWD, "/", "/") }

// find returns an entry of a directory. It does not follow a link.
func (e *entry) find(name string) (*entry, error) {
	return openEntry(int(e.file.Fd()), name, filepath.Join(e.path, name))
}

// openEntry opens a name in a directory, which has this path.
func openEntry(dir int, name, path string) (*entry, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := openAt(dir, name, flags|unix.O_DIRECTORY) // makes an automounter mount the directory
	if errors.Is(err, unix.ENOTDIR) {
		fd, err = openAt(dir, name, flags)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	e := &entry{path: path, file: os.NewFile(uintptr(fd), path)}
	if e.info, err = e.file.Stat(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// openAt is unix.Openat, and repeats a call that a signal interrupted.
func openAt(dir int, name string, flags int) (fd int, err error) {
	for {
		if fd, err = unix.Openat(dir, name, flags, 0); !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// target returns what a link leads to.
func (e *entry) target() (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(e.file.Fd()), "", buf)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: e.path, Err: err}
	}
	return string(buf[:n]), nil
}

// close closes the entry.
func (e *entry) close() { _ = e.file.Close() } // nothing was written
