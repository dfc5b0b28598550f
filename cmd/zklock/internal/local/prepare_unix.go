//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/zklock/zklock/internal/ownership"
)

// Mine is the Who of this process.
func Mine() Who {
	return Who{Getenv: os.Getenv, UID: os.Geteuid(), Passwd: func(uid int) string {
		u, err := user.LookupId(strconv.Itoa(uid))
		if err != nil {
			return ""
		}
		return u.HomeDir
	}}
}

// Prepare creates the directory if it does not exist. It checks that the directory is private
// and that no other user can replace it.
func Prepare(dir string) error {
	if strings.ContainsRune(dir, '\n') { // the socket's path is kept as one line
		return fmt.Errorf("%w: there is a line break in the name %q; %s", ErrNone, dir, Advice)
	}
	if err := ownership.CheckParents(dir); err != nil { // before anything is created there
		return fmt.Errorf("%w: %w; %s", ErrNone, err, Advice)
	}
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("%w: %w; %s", ErrNone, err, Advice)
	}
	return Private(dir)
}

// makeDir creates a directory and its missing parents, all with the mode 0700. It ignores
// the umask, which may mask bits of the owner.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err = makeDir(parent); err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(dir, 0o700)
}

// Private checks that dir is a directory of this user that no other user can enter or
// replace: clients trust the socket in it.
func Private(dir string) error {
	if err := ownership.CheckParents(dir); err != nil {
		return fmt.Errorf("%w: %w; %s", ErrNone, err, Advice)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%w: %w; %s", ErrNone, err, Advice)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a directory; %s", ErrNone, dir, Advice)
	case ok && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%w: %s belongs to user %d and this is user %d; %s", ErrNone, dir, stat.Uid, os.Geteuid(), Advice)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: %s is open to others (mode %04o): chmod 700 it if only zklock uses it; or %s", ErrNone, dir, info.Mode().Perm(), Advice)
	}
	return nil
}
