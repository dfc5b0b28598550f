//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/zklock/zklock/internal/ownership"
)

// guardName is the name of the second lock file. It is hidden, so that an operator who removes
// the first one leaves it.
const guardName = ".lock"

// lockFile takes an exclusive flock(2) of the directory, and of two files in it. All end with
// the process in any case. The files remain, because removing them would let two processes
// lock two different files. The file called name contains the process ID, for the error of a
// process that is refused. If an operator removes that file, the lock of the directory still keeps
// a second process out, and so does the lock of the guard.
//
// Any user who may read the directory can lock it, but not the files. So if other users may read
// the directory and it is locked, the files decide, which must exist: then their locks show whether
// a server runs.
func lockFile(name string) (_ Lock, err error) {
	var held flock
	defer func() {
		if err != nil {
			_ = held.Close() // the error that matters is the first
			err = lockedBy(name, err)
		}
	}()
	dir, locked, err := lockDir(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	held = append(held, dir)
	create := os.O_CREATE
	if locked {
		create = 0
	}
	for _, file := range []string{filepath.Join(filepath.Dir(name), guardName), name} {
		f, err := os.OpenFile(file, os.O_RDWR|create|ownership.NoFollow, 0o600)
		if locked && errors.Is(err, fs.ErrNotExist) {
			return nil, ErrLocked
		}
		if err != nil {
			return nil, err
		}
		held = append(held, f)
		if err := checkLockFile(f); err != nil {
			return nil, err
		}
		if err := tryFlock(f); err != nil {
			return nil, err
		}
	}
	writePID(held.file())
	return held, nil
}

// lockDir locks a directory. locked reports that another process has locked it, perhaps one of
// another user who may read the directory; if no other user may, lockDir returns [ErrLocked].
// Some network file systems cannot lock a directory: there, only the files have locks.
func lockDir(name string) (d *os.File, locked bool, err error) {
	d, err = os.OpenFile(name, os.O_RDONLY|ownership.NoWait, 0)
	if err != nil {
		return nil, false, err
	}
	if !errors.Is(tryFlock(d), ErrLocked) {
		return d, false, nil
	}
	info, err := d.Stat()
	if err == nil && info.Mode().Perm()&0o044 == 0 {
		err = ErrLocked
	}
	if err != nil {
		_ = d.Close() // the error that matters is the first
		return nil, false, err
	}
	return d, true, nil
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
// a link from another directory, or one that is not a regular file. Other users must not be able
// to open the file, because they could lock it.
func checkLockFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.Mode().IsRegular() || st.Nlink > 1 {
		return fmt.Errorf("%s is not a regular file with a single link: remove it", f.Name())
	}
	if info.Mode().Perm()&0o077 != 0 {
		_ = f.Chmod(0o600) // it fails if the file belongs to another user, who can lock it in any case
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

// flock is a lock that is held: the open directory, and the files in the order of their locks.
type flock []*os.File

// file returns the file that has the process ID.
func (l flock) file() *os.File { return l[len(l)-1] }

// Close releases the lock, that of the directory last.
func (l flock) Close() (err error) {
	for _, f := range slices.Backward(l) {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Check compares the locked file with the file that has its name now.
func (l flock) Check() error { return checkName(l.file(), ErrLockLost) }

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
