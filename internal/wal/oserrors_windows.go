package wal

import (
	"errors"
	"syscall"
)

// Windows reports a full disk by ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL, and
// ERROR_DISK_QUOTA_EXCEEDED. It never returns the ENOSPC of package syscall, which is
// not a system error number there.
const (
	errHandleDiskFull = syscall.Errno(39)
	errDiskFull       = syscall.Errno(112)
	errQuotaExceeded  = syscall.Errno(1295)
)

// errTooManyFiles is ERROR_TOO_MANY_OPEN_FILES.
const errTooManyFiles = syscall.Errno(4)

// OutOfDescriptors reports whether err means that the process has no free handle. The
// file was then not opened and not changed.
func OutOfDescriptors(err error) bool { return errors.Is(err, errTooManyFiles) }

// isFull reports whether err means that the disk, or the user's quota on it, is full.
func isFull(err error) bool {
	return errors.Is(err, errDiskFull) || errors.Is(err, errHandleDiskFull) || errors.Is(err, errQuotaExceeded)
}
