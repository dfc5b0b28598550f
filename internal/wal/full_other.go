//go:build !plan9 && !windows

package wal

import (
	"errors"
	"syscall"
)

// isFull reports whether err says that the disk, or what the user may have of it, is
// full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// OutOfDescriptors reports whether err says that the process, or the system, has no
// file descriptor to spare: a file was not opened, and nothing happened to it.
func OutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
