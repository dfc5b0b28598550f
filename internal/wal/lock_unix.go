//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package wal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
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
// refused, and a mark. If an operator removes or replaces the file, the lock of the directory still
// keeps a second process out.
//
// Any user who may read the directory can lock it, but not the file. So if other users may read
// the directory and it is locked, the lock of the file decides, if it is the file that the last
// server locked. The mark shows that: no copy has it.
func lockFile(name string) (_ Lock, err error) {
	l := &flock{}
	defer func() {
		if err != nil {
			_ = l.Close() // the error that matters is the first
			err = lockedBy(name, err)
		}
	}()
	create := os.O_CREATE
	if l.dir, err = os.OpenFile(filepath.Dir(name), os.O_RDONLY|ownership.NoWait, 0); err != nil {
		return nil, err
	}
	// Some network file systems cannot lock a directory: there, only the file has a lock.
	locked := errors.Is(tryFlock(l.dir), ErrLocked)
	if locked {
		if info, err := l.dir.Stat(); err != nil || info.Mode().Perm()&0o044 == 0 {
			return nil, cmp.Or(err, ErrLocked)
		}
		create = 0
	}
	l.File, err = os.OpenFile(name, os.O_RDWR|create|ownership.NoFollow, 0o600)
	if locked && errors.Is(err, fs.ErrNotExist) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	if err := checkLockFile(l.File); err != nil {
		return nil, err
	}
	mark, err := l.mark()
	if err != nil {
		return nil, err
	}
	// Before the lock of the file: a refused process must not keep out one that starts.
	if _, was := readLockFile(l.File); locked && was != mark {
		return nil, ErrLocked
	}
	if err := tryFlock(l.File); err != nil {
		return nil, err
	}
	writeLockFile(l.File, mark)
	return l, nil
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
		pid, _ = readLockFile(f)
		_ = f.Close() // it was only read
	}
	if pid == 0 || syscall.Kill(pid, 0) == syscall.ESRCH {
		return fmt.Errorf("%w, or another user who may read the directory has locked it", err)
	}
	return fmt.Errorf("%w, process %d", err, pid)
}

// checkLockFile returns an error for a file that writeLockFile must not write to: one with
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

// writeLockFile writes the process ID and the mark into the lock file. On a full disk the file
// stays empty; the lock does not depend on it.
func writeLockFile(f *os.File, mark string) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d %s", os.Getpid(), mark), 0) // see above
	}
}

// readLockFile returns the process ID in the lock file, or 0 if there is none, and the mark.
func readLockFile(f *os.File) (pid int, mark string) {
	var b [64]byte
	n, _ := f.ReadAt(b[:], 0) // a short read is handled below
	text, mark, _ := strings.Cut(strings.TrimSpace(string(b[:n])), " ")
	if pid, err := strconv.Atoi(text); err == nil && pid > 0 {
		return pid, mark
	}
	return 0, mark
}

// flock is a lock that is held.
type flock struct {
	*os.File
	dir *os.File
}

// mark returns the numbers of the directory and of the file, which no other file has in any
// directory as long as a process has them open.
func (l *flock) mark() (string, error) {
	var nodes []string
	for _, f := range []*os.File{l.dir, l.File} {
		var info syscall.Stat_t
		if err := syscall.Fstat(int(f.Fd()), &info); err != nil {
			return "", &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
		}
		nodes = append(nodes, fmt.Sprint(info.Ino))
	}
	return strings.Join(nodes, " "), nil
}

// Close releases the lock, that of the directory last. The files of a refused lock may be nil.
func (l *flock) Close() error { return errors.Join(l.File.Close(), l.dir.Close()) }

// Check compares the locked file with the file that has its name now.
func (l *flock) Check() error { return checkName(l.File, ErrLockLost) }

// CheckLinks implements changeChecker.
func (f osFile) CheckLinks() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return fmt.Errorf("the file has another hard link, so a server on another directory could "+
			"write to it: replace it with a copy (cp -p %[1]s %[1]s.copy, then mv %[1]s.copy %[1]s)",
			filepath.Base(f.Name()))
	}
	return nil
}

// CheckName implements changeChecker.
func (f osFile) CheckName() error { return checkName(f.File, ErrFileChanged) }

// CheckContent implements changeChecker.
func (f osFile) CheckContent(size int64, b []byte, offset int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < size {
		return fmt.Errorf("%w: %s has %d bytes of %d", ErrFileChanged, f.Name(), info.Size(), size)
	}
	got := make([]byte, len(b))
	if n, err := f.ReadAt(got, offset); n < len(got) && err != io.EOF {
		// The disk cannot read this. That is no change by another process, and the state in memory
		// may still be written to another segment.
		return nil
	}
	// io.EOF means that the file was truncated just now.
	if !bytes.Equal(got, b) {
		return fmt.Errorf("%w: %s has other content at offset %d", ErrFileChanged, f.Name(), offset)
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
