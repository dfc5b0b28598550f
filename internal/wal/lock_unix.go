//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/zklock/zklock/internal/ownership"
)

// lockFile takes an exclusive flock(2) of the directory and one of the file. Both end with
// the process in any case. The file remains, because removing it would let two processes
// lock two different files. It contains the process ID, for the error of a process that is
// refused. If an operator removes the file, the lock of the directory still keeps a second
// process out.
func lockFile(name string) (Lock, error) {
	dir, err := lockDir(filepath.Dir(name))
	if err != nil {
		return nil, lockedBy(name, err)
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|ownership.NoFollow, 0o600)
	if err != nil {
		_ = dir.Close() // the error that matters is the first
		return nil, err
	}
	if err = checkLockFile(f); err == nil {
		err = tryFlock(f)
	}
	if err != nil {
		_ = errors.Join(f.Close(), dir.Close()) // the error that matters is the first
		return nil, lockedBy(name, err)
	}
	writePID(f)
	return &flock{f, dir}, nil
}

// lockDir returns the locked directory. Some network file systems cannot lock a directory:
// there, only the file has a lock.
func lockDir(name string) (*os.File, error) {
	d, err := os.OpenFile(name, os.O_RDONLY|ownership.NoWait, 0)
	if err != nil {
		return nil, err
	}
	if err := tryFlock(d); errors.Is(err, ErrLocked) {
		_ = d.Close() // the error that matters is the first
		return nil, err
	}
	return d, nil
}

// tryFlock returns [ErrLocked] if another process has the lock.
func tryFlock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// lockedBy adds to [ErrLocked] the process that the lock file names. If that process has ended,
// the directory may be locked by another user, who needs only permission to read it. lockedBy
// does not try the lock of the file: a server that is starting would find the file locked.
func lockedBy(name string, err error) error {
	if !errors.Is(err, ErrLocked) {
		return err
	}
	pid := 0
	if f, err := os.OpenFile(name, os.O_RDONLY|ownership.NoFollow|ownership.NoWait, 0); err == nil {
		pid = readPID(f)
		_ = f.Close() // it was only read
	}
	if pid == 0 || syscall.Kill(pid, 0) == syscall.ESRCH {
		return fmt.Errorf("%w, or another user who may read the directory has locked it", err)
	}
	return fmt.Errorf("%w, process %d", err, pid)
}

// checkLockFile returns an error for a file that writePID must not write to: one with
// a link from another directory, or one that is not a regular file.
func checkLockFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.Mode().IsRegular() || st.Nlink > 1 {
		return fmt.Errorf("%s is not a regular file with a single link: remove it", f.Name())
	}
	return nil
}

// writePID writes the process ID into the lock file. On a full disk the file stays
// empty; the lock does not depend on it.
func writePID(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0) // see above
	}
}

// readPID returns the process ID in the lock file, or 0 if there is none.
func readPID(f *os.File) int {
	var b [20]byte
	n, _ := f.ReadAt(b[:], 0) // a short read is handled below
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

// flock is a lock that is held.
type flock struct {
	*os.File
	dir *os.File
}

// Close releases the lock.
func (l *flock) Close() error { return errors.Join(l.File.Close(), l.dir.Close()) }

// Check compares the locked file with the file that has its name now.
func (l *flock) Check() error { return checkName(l.File, ErrLockLost) }

// CheckName implements changeChecker.
func (f osFile) CheckName() error { return checkName(f.File, errMoved) }

// CheckSize implements changeChecker.
func (f osFile) CheckSize(size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < size {
		return fmt.Errorf("%w: %s has %d bytes of %d", errCut, f.Name(), info.Size(), size)
	}
	return nil
}

// checkName returns an error that wraps moved if another file or none has the name of f.
func checkName(f *os.File, moved error) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", moved, err)
	}
	if err != nil { // a disk that fails, for example
		return err
	}
	if !os.SameFile(mine, there) {
		return fmt.Errorf("%w: %s is a different file now", moved, f.Name())
	}
	return nil
}
