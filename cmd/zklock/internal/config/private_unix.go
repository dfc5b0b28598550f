//go:build unix

package config

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private returns an error if other users may read or write a file. The group may read a
// file of another user, such as root, because that user gave it to the group.
func private(name string, info fs.FileInfo) error {
	mode := info.Mode().Perm()
	owner, known := info.Sys().(*syscall.Stat_t)
	mine := !known || int(owner.Uid) == os.Geteuid()
	forbidden := fs.FileMode(0o027)
	if mine {
		forbidden = 0o077
	}
	if mode&forbidden != 0 {
		return fmt.Errorf("%w: %s has mode %04o: other users could read or change it: chmod 600 %s", ErrCredentials, name, mode, name)
	}
	return nil
}
