// Package memfs implements a file system in memory that fails as badly as a real one
// may. A crash loses data that was not synced, partially and out of order. An
// operation fails on request. Data that a failed sync did not write is never written.
// The package is for tests of package wal and for simulations. All randomness comes
// from the source given to [New], so a run replays exactly.
package memfs

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"

	"github.com/zklock/zklock/internal/wal"
)

// FS is the file system. Its methods are safe for concurrent use, but a run replays
// exactly only if a single goroutine uses it.
type FS struct {
	mu      sync.Mutex
	rand    *rand.Rand
	epoch   int // handles and locks of earlier epochs are invalid
	dirs    map[string]bool
	names   map[string]*node // as programs see them
	durable map[string]*node // as they are on disk
	changes []change         // from durable to names, in order
	locks   map[string]*heldLock

	fault func(Op) Fault
	ops   int
	syncs int
	limit int64 // bytes on disk, 0 for no limit
}

// change is an operation on names that is pending until its directory is synced.
type change struct {
	dir      string
	from, to string // create: to; rename: both; remove: from
	node     *node
}

var _ wal.FS = (*FS)(nil)

// New returns an empty file system with the random source r.
func New(r *rand.Rand) *FS {
	return &FS{
		rand:    r,
		dirs:    make(map[string]bool),
		names:   make(map[string]*node),
		durable: make(map[string]*node),
		locks:   make(map[string]*heldLock),
	}
}

// MkdirAll implements wal.FS. Directories are durable at once.
func (m *FS) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.begin(Op{Kind: OpMkdir, Name: dir}); f.Err != nil {
		return f.Err
	}
	m.dirs[filepath.Clean(dir)] = true
	return nil
}

// Create implements wal.FS.
func (m *FS) Create(name string) (wal.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = filepath.Clean(name)
	if f := m.begin(Op{Kind: OpCreate, Name: name}); f.Err != nil {
		return nil, f.Err
	}
	if !m.dirs[filepath.Dir(name)] {
		return nil, pathError("create", name, fs.ErrNotExist)
	}
	n := m.names[name]
	// An existing file is kept and emptied, so that a crash may restore its old
	// content.
	if n == nil {
		n = newNode()
		m.names[name] = n
		m.changes = append(m.changes, change{dir: filepath.Dir(name), to: name, node: n})
	}
	n.resize(0)
	return m.handle(name, n), nil
}

// Open implements wal.FS.
func (m *FS) Open(name string) (wal.File, error) {
	f, err := m.open(OpOpen, name)
	if err != nil {
		return nil, err
	}
	f.readOnly = true
	return f, nil
}

// OpenWrite implements wal.FS.
func (m *FS) OpenWrite(name string) (wal.File, error) {
	f, err := m.open(OpOpenWrite, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// open opens an existing file.
func (m *FS) open(kind Kind, name string) (*file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = filepath.Clean(name)
	if f := m.begin(Op{Kind: kind, Name: name}); f.Err != nil {
		return nil, f.Err
	}
	n := m.names[name]
	if n == nil {
		return nil, pathError("open", name, fs.ErrNotExist)
	}
	return m.handle(name, n), nil
}

// handle returns a handle for the present process.
func (m *FS) handle(name string, n *node) *file {
	return &file{fs: m, name: name, node: n, epoch: m.epoch}
}

// Rename implements wal.FS.
func (m *FS) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldname, newname = filepath.Clean(oldname), filepath.Clean(newname)
	if f := m.begin(Op{Kind: OpRename, Name: oldname}); f.Err != nil {
		return f.Err
	}
	n := m.names[oldname]
	if n == nil {
		return pathError("rename", oldname, fs.ErrNotExist)
	}
	delete(m.names, oldname)
	m.names[newname] = n
	m.changes = append(m.changes, change{dir: filepath.Dir(newname), from: oldname, to: newname, node: n})
	return nil
}

// Remove implements wal.FS.
func (m *FS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = filepath.Clean(name)
	if f := m.begin(Op{Kind: OpRemove, Name: name}); f.Err != nil {
		return f.Err
	}
	if m.names[name] == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	delete(m.names, name)
	m.changes = append(m.changes, change{dir: filepath.Dir(name), from: name})
	return nil
}

// ReadDir implements wal.FS. The names are sorted.
func (m *FS) ReadDir(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir = filepath.Clean(dir)
	if f := m.begin(Op{Kind: OpReadDir, Name: dir}); f.Err != nil {
		return nil, f.Err
	}
	if !m.dirs[dir] {
		return nil, pathError("readdir", dir, fs.ErrNotExist)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

// OpenDir implements wal.FS.
func (m *FS) OpenDir(dir string) (wal.Dir, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir = filepath.Clean(dir)
	if f := m.begin(Op{Kind: OpOpenDir, Name: dir}); f.Err != nil {
		return nil, f.Err
	}
	if !m.dirs[dir] {
		return nil, pathError("open", dir, fs.ErrNotExist)
	}
	return &openDir{fs: m, name: dir, epoch: m.epoch}, nil
}

// openDir is an open directory.
type openDir struct {
	fs    *FS
	name  string
	epoch int
}

// Close implements wal.Dir.
func (d *openDir) Close() error { return nil }

// Sync implements wal.Dir. If it fails, the changes stay unsynced.
func (d *openDir) Sync() error {
	m, dir := d.fs, d.name
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.epoch != m.epoch {
		return pathError("sync", dir, ErrCrashed)
	}
	if f := m.begin(Op{Kind: OpSyncDir, Name: dir}); f.Err != nil {
		return f.Err
	}
	m.syncs++
	// Changes in other directories stay pending.
	var others []change
	for _, c := range m.changes {
		if c.dir == dir {
			c.apply(m.durable)
		} else {
			others = append(others, c)
		}
	}
	m.changes = others
	return nil
}

// apply applies the change to a set of names.
func (c change) apply(names map[string]*node) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

// Lock implements wal.FS. A crash or restart releases the lock.
func (m *FS) Lock(name string) (wal.Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = filepath.Clean(name)
	if f := m.begin(Op{Kind: OpLock, Name: name}); f.Err != nil {
		return nil, f.Err
	}
	if m.locks[name] != nil {
		return nil, fmt.Errorf("lock %s: %w", name, wal.ErrLocked)
	}
	// The lock file itself is not created: nothing reads it, and a lock that fails
	// for lack of space would not be more realistic.
	l := &heldLock{fs: m, name: name, epoch: m.epoch}
	m.locks[name] = l
	return l, nil
}

// LoseLock simulates an operator who removes the lock file. Another process can take
// the lock, and the process that held it can detect that.
func (m *FS) LoseLock(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.locks, filepath.Clean(name))
}

// heldLock is a lock that is held.
type heldLock struct {
	fs    *FS
	name  string
	epoch int
}

// Close releases the lock.
func (l *heldLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.epoch != l.fs.epoch {
		return pathError("unlock", l.name, ErrCrashed)
	}
	if l.fs.locks[l.name] == l {
		delete(l.fs.locks, l.name)
	}
	return nil
}

// Check implements wal.Lock. It counts as reading the directory.
func (l *heldLock) Check() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.epoch != l.fs.epoch {
		return pathError("check", l.name, ErrCrashed)
	}
	if f := l.fs.begin(Op{Kind: OpReadDir, Name: l.name}); f.Err != nil {
		return f.Err
	}
	if l.fs.locks[l.name] != l {
		return fmt.Errorf("%w: %s", wal.ErrLockLost, l.name)
	}
	return nil
}

// pathError returns an error with the operation and the file, as in package os.
func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}
