package wal

import (
	"errors"
	"syscall"
)

// What Windows says of a full disk: ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL and
// ERROR_DISK_QUOTA_EXCEEDED. It never gives the ENOSPC of package syscall, which has no
// number of the system's there.
const (
	errHandleDiskFull = syscall.Errno(39)
	errDiskFull       = syscall.Errno(112)
	errQuotaExceeded  = syscall.Errno(1295)
)

// errTooManyFiles is ERROR_TOO_MANY_OPEN_FILES.
const errTooManyFiles = syscall.Errno(4)

// OutOfDescriptors reports whether err says that the process has no handle to spare: a
// file was not opened, and nothing happened to it.
func OutOfDescriptors(err error) bool { return errors.Is(err, errTooManyFiles) }

// isFull reports whether err says that the disk, or what the user may have of it, is
// full.
func isFull(err error) bool {
	return errors.Is(err, errDiskFull) || errors.Is(err, errHandleDiskFull) || errors.Is(err, errQuotaExceeded)
}
