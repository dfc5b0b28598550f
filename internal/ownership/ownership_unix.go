//go:build unix

package ownership

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
	"time"
)

// NoFollow is a flag for os.OpenFile that refuses a symbolic link in place of the file.
const NoFollow = syscall.O_NOFOLLOW

// NoWait is a flag for os.OpenFile that opens a pipe without waiting for its other end.
const NoWait = syscall.O_NONBLOCK

// onlyDir ends the path of a directory to open. A pipe then fails at once, instead of waiting for
// its other end.
const onlyDir = "/."

// CheckLinks refuses a path through a symbolic link of another user, who could change
// where it leads. It trusts the links of root and of this user. A missing directory, or
// one that this user cannot read, is no error.
func CheckLinks(path string) error {
	_, _, err := Resolve(path)
	return err
}

// Resolve returns a path without symbolic links that leads to the same file, and what describes
// the file. It refuses links as [CheckLinks] does, also if a link appears while Resolve runs. If
// there is no file, or if this user cannot reach it, it returns the path itself.
func Resolve(path string) (real string, file fs.FileInfo, err error) {
	full, err := Absolute(path)
	if err != nil {
		return "", nil, err
	}
	real, file, err = resolve(full, nil)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return path, nil, nil
	}
	return real, file, err
}

// Stat returns what describes the file that a path leads to. It refuses links as [CheckLinks] does,
// also if a link appears while Stat runs.
func Stat(path string) (fs.FileInfo, error) {
	full, err := Absolute(path)
	if err != nil {
		return nil, err
	}
	_, info, err := resolve(full, nil)
	return info, err
}

// A linkError says that another user could change where a symbolic link leads.
type linkError struct {
	link string
	uid  int
}

func (e *linkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link of user %d, who could change its target, and this is user %d: "+
		"name what it leads to, or give the link to this user or root", e.link, e.uid, os.Geteuid())
}

// follow returns what a symbolic link leads to, and refuses that of another user. The owner of a
// link may be unmapped if only the owner of its directory could have put it there.
func follow(link, dir *entry) (to string, err error) {
	uid, other := Other(link.info)
	if !other || uid == unmapped() && dir.info.Mode().Perm()&0o022 == 0 {
		return link.target()
	}
	return "", &linkError{link.path, uid}
}

// CheckDir refuses a directory in which any user, or a user other than this one and
// root, could replace the files. It refuses paths as [Stat] does. It lets the members of the
// directory's group write: a container's volume often belongs to root and a group.
func CheckDir(dir string) error {
	info, err := Stat(dir)
	if err != nil {
		return err
	}
	if uid, other := Other(info); other {
		return fmt.Errorf("%s belongs to user %d, who could replace the files in it, and this is user %d: "+
			"run the server as the owner, or chown the directory", dir, uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("every user could replace the files in %s (mode %04o): chmod 700 it if only zklock uses it, or choose another directory", dir, info.Mode().Perm())
	}
	return nil
}

// CheckParents refuses a path if a user other than this one and root could replace a
// directory or a link on the way to it: each parent directory must belong to root or this
// user, and others may not write to it. There are two exceptions. In a directory with the
// sticky bit, such as /tmp, users cannot replace the files of others. The members of this
// user's own group may write, because home directories are often made so. CheckParents
// checks the directories of links as well, and refuses links as [CheckLinks] does. It
// ends at the first directory that is missing. In a user namespace in which root has no
// number, a directory of an unmapped user may be root's, and counts as root's.
func CheckParents(path string) error {
	path, err := Absolute(path)
	if err != nil {
		return err
	}
	_, _, err = resolve(path, checkParent)
	return unlessMissing(err)
}

// resolve follows an absolute path as the kernel does, and returns the path and the file that
// it leads to. It refuses links as [CheckLinks] does. It calls check, if not nil, for each
// directory before it looks for a name there.
func resolve(path string, check func(dir string, info fs.FileInfo) error) (string, fs.FileInfo, error) {
	at, err := rootDir()
	if err != nil {
		return "", nil, err
	}
	defer func() { at.close() }()
	for links, rest := 0, names(path); len(rest) > 0; {
		if check != nil {
			if err := check(at.path, at.info); err != nil {
				return "", nil, err
			}
		}
		next, err := at.find(rest[0])
		if err != nil {
			return "", nil, err
		}
		rest = rest[1:]
		if next.info.Mode().Type() != fs.ModeSymlink {
			at.close()
			at = next
			continue
		}
		to, err := follow(next, at)
		next.close()
		if links++; err == nil && links > maxLinks {
			err = fmt.Errorf("%s: too many symbolic links", path)
		}
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(to) {
			top, err := rootDir()
			if err != nil {
				return "", nil, err
			}
			at.close()
			at = top
		}
		// A ".." is taken after the names before it were followed, as the kernel does.
		rest = append(names(to), rest...)
	}
	return at.path, at.info, nil
}

// checkOpened refuses an opened directory if its path, without links of other users, does
// not lead to it. Another user cannot move a directory of this one to that place, so the
// path did not pass through such a link when the directory was opened.
func checkOpened(path string, opened fs.FileInfo) error {
	path, err := Absolute(path)
	if err != nil {
		return err
	}
	_, info, err := resolve(path, nil)
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%s led to another directory while it was opened: name a directory below those of this user and root", path)
	}
	return err
}

// maxLinks is how many links the kernel follows in one path.
const maxLinks = 40

// names returns the names that a path consists of.
func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// unlessMissing makes no error of a file that is not there.
func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkParent refuses a directory in which other users could replace an entry.
func checkParent(dir string, info fs.FileInfo) error {
	uid, other := Other(info)
	writable := info.Mode().Perm() & 0o022
	switch {
	case other && uid != unmapped():
		return fmt.Errorf("the directory %s belongs to user %d, who could replace what is in it, and this is user %d: "+
			"choose a path below directories of this user and root", dir, uid, os.Geteuid())
	case writable == 0, info.Mode()&fs.ModeSticky != 0, writable == 0o020 && ownGroup(info):
		return nil
	}
	return fmt.Errorf("other users could replace what is in the directory %s (mode %04o): chmod go-w it, or choose another path",
		dir, info.Mode().Perm())
}

// ownGroup reports whether a file's group is the private group of this process's user:
// the user's primary group, of the user's name.
func ownGroup(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	u, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil || u.Gid != strconv.FormatUint(uint64(st.Gid), 10) {
		return false
	}
	g, err := user.LookupGroupId(u.Gid)
	return err == nil && g.Name == u.Username
}

// GroupWritable reports whether the members of a directory's group could replace the
// files in it.
func GroupWritable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o020 != 0
}

// ReadableByAll reports whether every user could open a directory, and so lock it.
func ReadableByAll(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o004 != 0
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

// Exposed returns what is wrong with a file with secrets if other users may read or change it,
// and what to do. Otherwise, it returns "". The group may read a file of another user, such as
// root, because that user gave it to the group.
func Exposed(info fs.FileInfo) string {
	owner, known := info.Sys().(*syscall.Stat_t)
	mode, forbidden, remedy := info.Mode().Perm(), fs.FileMode(0o077), "chmod 600 it"
	if known && int(owner.Uid) != os.Geteuid() {
		forbidden, remedy = 0o027, fmt.Sprintf("chmod 640 it, because it belongs to user %d", owner.Uid)
	}
	if mode&forbidden == 0 {
		return ""
	}
	return fmt.Sprintf("other users could read or change it (mode %04o): %s", mode, remedy)
}

// flock locks a directory. It polls, because the kernel's blocking lock has no deadline.
func flock(dir *os.File, deadline time.Time) error {
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil // a file system without locks: a lost update is better than none
		case time.Now().After(deadline):
			return ErrLocked
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
}
