//go:build unix

package credentials

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a file that others may read or write. A group may read one
// that belongs to another user, as root's that is meant for this group.
func private(name string, info fs.FileInfo) error {
	mode := info.Mode().Perm()
	owner, known := info.Sys().(*syscall.Stat_t)
	mine := !known || int(owner.Uid) == os.Geteuid()
	forbidden := fs.FileMode(0o027)
	if mine {
		forbidden = 0o077
	}
	if mode&forbidden != 0 {
		return fmt.Errorf("%w: %s has mode %04o: others could read or change it: chmod 600 %s", ErrCredentials, name, mode, name)
	}
	return nil
}
