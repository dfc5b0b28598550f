//go:build !plan9

package wal

import (
	"errors"
	"io/fs"
	"syscall"
)

// Advice returns what to do about a file system error at startup, or "" if it has no
// advice.
func Advice(err error) string {
	switch {
	case errors.Is(err, ErrPoisoned): // the error says it already
	case isFull(err):
		return "; free space on this disk, then start the server again: no acknowledged change is lost"
	case exceedsFileSize(err):
		return "; " + fileSizeAdvice + ", then start the server again: no acknowledged change is lost"
	case errors.Is(err, syscall.EROFS):
		return "; the file system is mounted read-only, often after an error: check the disk"
	case errors.Is(err, syscall.ELOOP):
		return "; the server follows no symbolic link to a file: find out which user created it, and remove it"
	case OutOfDescriptors(err):
		return "; raise the limit of open files (ulimit -n, or LimitNOFILE= of systemd)"
	case errors.Is(err, fs.ErrPermission):
		return "; the user that runs the server must own the directory and every file in it"
	case errors.Is(err, syscall.EIO):
		return "; check the disk"
	}
	return ""
}

// exceedsFileSize reports whether err means that a file would exceed the limit of the
// process.
func exceedsFileSize(err error) bool { return errors.Is(err, syscall.EFBIG) }
