//go:build unix

package wal

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// noFollow makes open(2) refuse a symbolic link.
const noFollow = syscall.O_NOFOLLOW

// checkLinks refuses a path through a symbolic link of another user, who could turn it
// to any directory of this one. Root's links are trusted.
func checkLinks(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			continue // what is missing is made later, and what cannot be read fails there
		}
		if uid, other := otherUser(info); other {
			return fmt.Errorf("%s is a symbolic link of user %d, who could turn it elsewhere, and this is user %d: "+
				"name the directory itself, or give the link to this user or root", path, uid, os.Geteuid())
		}
	}
	return nil
}

// checkOwner refuses a directory in which any user, or a user other than this one and
// root, could replace the files. The members of its group may be allowed to write: a
// container's volume often belongs to root and a group.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if uid, other := otherUser(info); other {
		return fmt.Errorf("%s belongs to user %d, who could replace the files in it, and this is user %d: "+
			"run the server as the owner, or chown the directory", dir, uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("every user could replace the files in %s (mode %04o): chmod 700 it", dir, info.Mode().Perm())
	}
	return nil
}

// otherUser returns the owner of a file, and whether that is neither this process's user
// nor root.
func otherUser(info os.FileInfo) (uid int, other bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, true
	}
	return int(st.Uid), st.Uid != 0 && int(st.Uid) != os.Geteuid()
}
