//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
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
// and that no other user can replace it. Otherwise it returns a [*DirError].
func Prepare(dir string) error {
	if strings.ContainsRune(dir, '\n') { // the socket's path is kept as one line
		return &DirError{Reason: fmt.Errorf("there is a line break in the name %q", dir)}
	}
	if err := ownership.CheckParents(dir); err != nil { // before anything is created there
		return &DirError{Reason: err}
	}
	if err := ownership.MakeDir(dir, 0o700); err != nil {
		return &DirError{Reason: err}
	}
	return Private(dir)
}

// Check checks the directory as Prepare does, but does not create it: then the error is
// ErrNotRunning.
func (p Place) Check() error {
	err := Private(p.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotRunning
	}
	return err
}

// Private checks that dir is a directory of this user that no other user can enter or
// replace: clients trust the socket in it. Otherwise it returns a [*DirError].
func Private(dir string) error {
	if err := ownership.CheckParents(dir); err != nil {
		return &DirError{Reason: err}
	}
	info, err := ownership.Stat(dir)
	if err != nil {
		return &DirError{Reason: err}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return &DirError{Reason: fmt.Errorf("%s is not a directory", dir)}
	case ok && int(stat.Uid) != os.Geteuid():
		return &DirError{Reason: fmt.Errorf("%s belongs to user %d and this is user %d", dir, stat.Uid, os.Geteuid())}
	case info.Mode().Perm()&0o077 != 0:
		return &DirError{
			Reason: fmt.Errorf("%s is open to others (mode %04o)", dir, info.Mode().Perm()),
			Remedy: "chmod 700 it if only zklock uses it",
		}
	}
	return nil
}
