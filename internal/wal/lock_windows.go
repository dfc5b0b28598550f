package wal

import (
	"errors"
	"os"
	"syscall"
)

// errSharingViolation is ERROR_SHARING_VIOLATION: another handle is open.
const errSharingViolation = syscall.Errno(32)

// lockFile opens the file without sharing. The system refuses every other open while
// this handle exists, and closes the handle with the process.
func lockFile(name string) (Lock, error) {
	p, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharingViolation) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return unshared{os.NewFile(uintptr(h), name)}, nil
}

// unshared is a lock that is held.
type unshared struct{ *os.File }

// Check returns nil: a file that is open without sharing can be neither removed nor
// replaced.
func (unshared) Check() error { return nil }
