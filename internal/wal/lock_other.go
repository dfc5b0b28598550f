//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lockFile creates the file exclusively, the best method without flock. A killed
// process leaves the file, and the operator must then remove it.
func lockFile(name string) (Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return &exclusiveFile{f}, nil
}

// exclusiveFile is a lock by existence. Closing it removes the file.
type exclusiveFile struct{ *os.File }

// Check checks that the file still exists.
func (f *exclusiveFile) Check() error {
	if _, err := os.Stat(f.Name()); err != nil {
		return fmt.Errorf("%w: %w", ErrLockLost, err)
	}
	return nil
}

// Close releases the lock.
func (f *exclusiveFile) Close() error {
	return errors.Join(f.File.Close(), os.Remove(f.Name()))
}
