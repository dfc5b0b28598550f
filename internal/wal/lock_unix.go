//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package wal

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/zklock/zklock/internal/ownership"
)

// lockFile takes an exclusive flock(2), which ends with the process in any case. The
// file remains, because removing it would let two processes lock two different files.
// It contains the process ID, for the error of a process that is refused.
func lockFile(name string) (Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|ownership.NoFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := checkLockFile(f); err != nil {
		_ = f.Close() // the error that matters is the first
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		writePID(f)
		return &flock{f}, nil
	}
	pid := readPID(f)
	_ = f.Close() // the error that matters is the first
	switch {
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return nil, err
	case pid > 0:
		return nil, fmt.Errorf("%w, process %d", ErrLocked, pid)
	}
	return nil, ErrLocked
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
type flock struct{ *os.File }

// Check compares the locked file with the file that has its name now.
func (l *flock) Check() error {
	mine, err := l.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLockLost, err)
	}
	there, err := os.Stat(l.Name())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLockLost, err)
	}
	if !os.SameFile(mine, there) {
		return fmt.Errorf("%w: %s is a different file now", ErrLockLost, l.Name())
	}
	return nil
}
