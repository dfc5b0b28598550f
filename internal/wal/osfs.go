package wal

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// OS is the file system of the operating system. Files are made with mode
// 0600 and directories with 0700, since records hold data and credentials
// of clients. The zero value is ready to use.
type OS struct{}

var _ FS = OS{}

// MkdirAll implements [FS].
func (OS) MkdirAll(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := (OS{}).MkdirAll(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	return syncDir(parent) // where the new name is
}

// Create implements [FS].
func (OS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// Open implements [FS].
func (OS) Open(name string) (File, error) {
	return openOS(name, os.O_RDWR)
}

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

// SyncDir implements [FS].
func (OS) SyncDir(dir string) error { return syncDir(dir) }

// Lock implements [FS].
func (OS) Lock(name string) (Lock, error) {
	c, err := lockFile(name)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return c, nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" {
		// No way to sync a directory there: NTFS journals names by itself.
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// osFile is an open file of the operating system.
type osFile struct{ *os.File }

// openOS opens a file that nobody but its owner may read: see OS.
func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Size implements [File].
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, &fs.PathError{Op: "size", Path: f.Name(), Err: fs.ErrInvalid}
	}
	return info.Size(), nil
}

// Sync implements [File].
func (f osFile) Sync() error { return fdatasync(f.File) }

// DropCache makes the next reads come from the disk where the system can be
// asked for that.
func (f osFile) DropCache() error { return dropCache(f.File) }
