//go:build !plan9 && !windows

package wal

import (
	"errors"
	"syscall"
)

// isFull reports whether err means that the disk, or the user's quota on it, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// OutOfDescriptors reports whether err means that the process or the system has no
// free file descriptor. The file was then not opened and not changed.
func OutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
