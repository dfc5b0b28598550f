package wal_test

import (
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
)

// windowsFS is a file system on which an open file cannot be renamed, removed, or
// replaced, as on Windows for files opened by package os.
type windowsFS struct {
	*memfs.FS
	mu   sync.Mutex
	open map[string]int
}

// windowsFile is an open file of a windowsFS.
type windowsFile struct {
	wal.File
	fs   *windowsFS
	name string
}

func (u *windowsFS) hold(f wal.File, name string, err error) (wal.File, error) {
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[name]++
	return windowsFile{f, u, name}, nil
}

func (u *windowsFS) Create(name string) (wal.File, error) {
	f, err := u.FS.Create(name)
	return u.hold(f, name, err)
}

func (u *windowsFS) Open(name string) (wal.File, error) {
	f, err := u.FS.Open(name)
	return u.hold(f, name, err)
}

func (u *windowsFS) OpenWrite(name string) (wal.File, error) {
	f, err := u.FS.OpenWrite(name)
	return u.hold(f, name, err)
}

func (f windowsFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.open[f.name]--
	return f.File.Close()
}

// free returns an error if a file of this name is open.
func (u *windowsFS) free(op string, names ...string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names {
		if u.open[name] > 0 {
			return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("the file is being used by another process")}
		}
	}
	return nil
}

func (u *windowsFS) Rename(oldname, newname string) error {
	if err := u.free("rename", oldname, newname); err != nil {
		return err
	}
	return u.FS.Rename(oldname, newname)
}

func (u *windowsFS) Remove(name string) error {
	if err := u.free("remove", name); err != nil {
		return err
	}
	return u.FS.Remove(name)
}

// TestOpenFilesAreNotRenamed runs a log through many segments and snapshots, and
// opens it again.
func TestOpenFilesAreNotRenamed(t *testing.T) {
	u := &windowsFS{FS: memfs.New(seeded(9)), open: make(map[string]int)}
	for life := range 3 {
		l, _, s := mustOpen(t, u, smallOptions(9))
		for i := range 40 {
			appendAll(t, l, &s, fmt.Sprintf("life %d, record %d of a log with short segments", life, i))
			if i%10 != 9 {
				continue
			}
			must(t, l.Snapshot(s.index, nil, s.snapshot))
		}
		if n := l.Stats().Segments; n < 3 {
			t.Fatalf("%d segments", n)
		}
		must(t, l.Close())
	}
	for name, n := range u.open {
		if n != 0 {
			t.Errorf("%s is open %d times at the end", name, n)
		}
	}
}
