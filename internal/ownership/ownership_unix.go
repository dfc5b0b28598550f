//go:build unix

package ownership

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// NoFollow is a flag for os.OpenFile that refuses a symbolic link in place of the file.
const NoFollow = syscall.O_NOFOLLOW

// NoWait is a flag for os.OpenFile that waits for nobody at the other end of a pipe.
const NoWait = syscall.O_NONBLOCK

// CheckLinks refuses a path through a symbolic link of another user, who could turn it
// to any file or directory of this one. It trusts root's links and this user's. What is
// missing is no error.
func CheckLinks(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			continue // what cannot be read fails where it is used
		}
		if uid, other := Other(info); other {
			return fmt.Errorf("%s is a symbolic link of user %d, who could turn it elsewhere, and this is user %d: "+
				"name what it leads to, or give the link to this user or root", path, uid, os.Geteuid())
		}
	}
	return nil
}

// CheckDir refuses a directory in which any user, or a user other than this one and
// root, could replace the files. It lets the members of the directory's group write: a
// container's volume often belongs to root and a group.
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if uid, other := Other(info); other {
		return fmt.Errorf("%s belongs to user %d, who could replace the files in it, and this is user %d: "+
			"run the server as the owner, or chown the directory", dir, uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("every user could replace the files in %s (mode %04o): chmod 700 it", dir, info.Mode().Perm())
	}
	return nil
}

// GroupWritable reports whether the members of a directory's group could replace the
// files in it.
func GroupWritable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o020 != 0
}

// Other returns the owner of a file, and whether that is neither this process's user nor
// root.
func Other(info fs.FileInfo) (uid int, other bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, true
	}
	return int(st.Uid), st.Uid != 0 && int(st.Uid) != os.Geteuid()
}
