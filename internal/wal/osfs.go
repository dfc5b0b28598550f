package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/zklock/zklock/internal/ownership"
)

// OS is the file system of the operating system. It creates files with mode 0600 and
// directories with 0700, because records contain data and credentials of clients. On
// Unix it does not follow symbolic links to files. The zero value is ready to use.
type OS struct{}

var _ FS = OS{}

// MkdirAll implements [FS].
func (OS) MkdirAll(dir string) error {
	if err := ownership.CheckLinks(dir); err != nil {
		return err
	}
	if err := ownership.MakeDir(dir, 0o700); err != nil {
		return err
	}
	return ownership.CheckDir(dir)
}

// Create implements [FS]. An existing file or link is removed and never written to,
// because it may belong to a process that ended, or to another user.
func (OS) Create(name string) (File, error) {
	f, err := openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := os.Remove(name); err != nil {
		return nil, err
	}
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open implements [FS].
func (OS) Open(name string) (File, error) { return openOS(name, os.O_RDONLY) }

// OpenWrite implements [FS].
func (OS) OpenWrite(name string) (File, error) { return openOS(name, os.O_RDWR) }

// Rename implements [FS].
func (OS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

// Remove implements [FS].
func (OS) Remove(name string) error { return os.Remove(name) }

// ReadDir implements [FS].
func (OS) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Lock implements [FS].
func (OS) Lock(name string) (Lock, error) {
	c, err := lockFile(name)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return c, nil
}

// OpenDir implements [FS].
func (OS) OpenDir(dir string) (Dir, error) {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" {
		return unsyncedDir{}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// unsyncedDir is a directory on a system that cannot sync directories. NTFS journals
// names by itself.
type unsyncedDir struct{}

func (unsyncedDir) Sync() error  { return nil }
func (unsyncedDir) Close() error { return nil }

// osFile is an open file of the operating system.
type osFile struct{ *os.File }

// openOS opens a file with permissions for its owner only: see OS. It does not wait
// for the other end of a pipe.
func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag|ownership.NoFollow|ownership.NoWait, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// errNotRegular is the error for a directory, a pipe, or a device in place of a file.
var errNotRegular = errors.New("not a regular file: find out which user created it, and remove it")

// Size implements [File].
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, &fs.PathError{Op: "size", Path: f.Name(), Err: errNotRegular}
	}
	return info.Size(), nil
}

// Sync implements [File].
func (f osFile) Sync() error { return fdatasync(f.File) }

// DropCache makes the next reads come from the disk, if the system supports that.
func (f osFile) DropCache() error { return dropCache(f.File) }

// FreeSpace implements spaceTeller.
func (f osFile) FreeSpace() (free int64, known bool) { return freeSpace(f.File) }
