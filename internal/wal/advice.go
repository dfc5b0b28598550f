//go:build !plan9

package wal

import (
	"errors"
	"io/fs"
	"syscall"
)

// advice is what to do about an error of the file system at the start, "" if
// nothing can be said.
func advice(err error) string {
	switch {
	case errors.Is(err, ErrPoisoned): // says it already
	case isFull(err):
		return "; free space on this disk, then start again: nothing acknowledged is lost"
	case errors.Is(err, syscall.EROFS):
		return "; the file system is mounted read-only, often after an error: check the disk"
	case errors.Is(err, fs.ErrPermission):
		return "; the user that runs the server must own the directory and every file in it"
	case errors.Is(err, syscall.EIO):
		return "; check the disk"
	}
	return ""
}
