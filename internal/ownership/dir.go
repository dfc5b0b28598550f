package ownership

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// OpenDir opens a directory for writes below it. It refuses a path through a symbolic link
// of another user, as [CheckLinks] does, also if the link appears while OpenDir runs. The
// directory itself, and those above it, may belong to other users: they can see and
// replace what is written there, but cannot make it appear in another directory.
func OpenDir(path string) (*os.Root, error) {
	if path == "" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	root, err := os.OpenRoot(path + onlyDir)
	if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
		wrong.Path = path
	}
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		err = checkOpened(path, opened)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// MakeDir makes a directory and its missing parents, durably, and with the mode perm as far as
// the umask permits. The umask takes nothing from the owner. MakeDir refuses paths as [OpenDir]
// does. An existing directory keeps its mode.
func MakeDir(path string, perm fs.FileMode) error {
	dir, err := OpenDir(path)
	if err == nil {
		return dir.Close()
	}
	// Unlike filepath.Dir, Split keeps each "..", which leads elsewhere after a link.
	parent, name := filepath.Split(strings.TrimRightFunc(path, isSeparator))
	if !errors.Is(err, fs.ErrNotExist) || name == "" {
		return err
	}
	if parent == filepath.VolumeName(parent) { // none, or a drive without its root
		parent += "."
	}
	if err := MakeDir(parent, perm); err != nil {
		return err
	}
	if dir, err = OpenDir(parent); err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Mkdir(name, perm)
	if errors.Is(err, fs.ErrExist) { // another process has made it, or a link of another user
		if dir, err = OpenDir(path); err == nil {
			err = dir.Close()
		}
		return err
	}
	if err != nil {
		return inDir(dir, err)
	}
	info, err := dir.Lstat(name)
	if err == nil && perm&^info.Mode()&0o700 != 0 {
		err = dir.Chmod(name, info.Mode()|perm&0o700)
	}
	if err != nil {
		return inDir(dir, err)
	}
	return syncNames(dir)
}

// isSeparator reports whether a character separates the names of a path.
func isSeparator(r rune) bool { return r == '/' || r == filepath.Separator }

// syncNames makes the names in a directory durable, where the system and the file system can
// sync directories. NTFS journals names by itself.
func syncNames(dir *os.Root) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" {
		return nil
	}
	f, err := dir.Open(".")
	if err != nil {
		return inDir(dir, err)
	}
	defer f.Close()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// inDir makes the new error of an operation in a directory name the whole path.
func inDir(dir *os.Root, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		e.Op, e.Path = strings.TrimSuffix(e.Op, "at"), filepath.Join(dir.Name(), e.Path)
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		e.Op = strings.TrimSuffix(e.Op, "at")
		e.Old, e.New = filepath.Join(dir.Name(), e.Old), filepath.Join(dir.Name(), e.New)
	}
	return err
}

// ErrLocked means that another process has locked a directory for too long.
var ErrLocked = errors.New("another process has locked the directory")

// Lock locks a directory against other callers of Lock on this machine, until the file that
// it returns is closed. If that takes longer than wait, it returns ErrLocked. No lock file
// remains. On a file system without locks, and on systems other than Unix, it locks nothing.
func Lock(dir *os.Root, wait time.Duration) (*os.File, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	if err := flock(f, time.Now().Add(wait)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Replace replaces a file in a directory, whole or not at all, and follows no link there.
// write writes the new file.
func Replace(dir *os.Root, name string, perm fs.FileMode, write func(*os.File) error) error {
	f, temp, err := CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Chmod(perm)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = Rename(dir, temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp)
	}
	return err
}

// CreateTemp makes a file in a directory as [os.CreateTemp] does, and returns its name
// there.
func CreateTemp(dir *os.Root, pattern string) (*os.File, string, error) {
	prefix, suffix, _ := strings.Cut(pattern, "*")
	for try := 0; ; try++ {
		name := prefix + strconv.FormatUint(rand.Uint64(), 36) + suffix
		f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil || !os.IsExist(err) || try == 100 {
			return f, name, inDir(dir, err)
		}
	}
}

// Rename renames a file in a directory.
func Rename(dir *os.Root, from, to string) error { return inDir(dir, dir.Rename(from, to)) }
