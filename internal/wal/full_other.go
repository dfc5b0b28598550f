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
