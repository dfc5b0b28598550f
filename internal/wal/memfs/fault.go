package memfs

import (
	"io/fs"
	"path/filepath"
	"slices"
)

// Kind is a kind of operation.
type Kind int

// The kinds of operations that are counted and can fail.
const (
	OpMkdir Kind = iota
	OpCreate
	OpOpen
	OpRename
	OpRemove
	OpReadDir
	OpSyncDir
	OpLock
	OpRead
	OpWrite
	OpSize
	OpTruncate
	OpSync
	OpClose
	OpOpenWrite
	OpOpenDir
)

// String returns the name of the kind.
func (k Kind) String() string {
	names := [...]string{"mkdir", "create", "open", "rename", "remove", "readdir", "syncdir",
		"lock", "read", "write", "size", "truncate", "sync", "close", "openwrite", "opendir"}
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Op is an operation that is about to be executed.
type Op struct {
	// N is the number of the operation since New, from 0.
	N int
	// Kind is the kind of the operation.
	Kind Kind
	// Name is the path of the file or directory.
	Name string
	// Len is the number of bytes to read or write.
	Len int
}

// Fault describes how an operation fails. The zero value means that it does not fail.
type Fault struct {
	// Err is the error that the operation returns.
	Err error
	// Keep is how many bytes of a failed write are written nevertheless.
	Keep int
}

// SetFault makes f decide the fault of every operation from now on. Nil disables
// faults. f must not call the FS.
func (m *FS) SetFault(f func(Op) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// FailAt makes the operation after the next n operations fail; 0 means the next one.
// It replaces the function that SetFault set. A failed write still writes keep bytes.
func (m *FS) FailAt(n int, err error, keep int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The decision compares numbers and has no state, so it may be asked about one
	// operation twice.
	at := m.ops + n
	m.fault = func(op Op) Fault {
		if op.N != at {
			return Fault{}
		}
		return Fault{Err: pathError(op.Kind.String(), op.Name, err), Keep: keep}
	}
}

// begin counts an operation and returns its fault. mu must be held.
func (m *FS) begin(op Op) Fault {
	// Failed operations count too, so that a sweep over all operations reaches each
	// one.
	op.N = m.ops
	m.ops++
	if m.fault == nil {
		return Fault{}
	}
	return m.fault(op)
}

// SetLimit sets how many bytes of blocks all files together may use; 0 means no
// limit. A write beyond the limit is short and returns syscall.ENOSPC. Holes use no
// space.
func (m *FS) SetLimit(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = bytes
}

// Ops returns the number of operations so far.
func (m *FS) Ops() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// Syncs returns the number of successful syncs of files and directories so far.
func (m *FS) Syncs() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.syncs
}

// ReadFile returns a copy of a file's content as programs see it.
func (m *FS) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[filepath.Clean(name)]
	if n == nil {
		return nil, pathError("open", name, fs.ErrNotExist)
	}
	return slices.Clone(n.data), nil
}

// WriteFile replaces a file and its directory entry durably, without faults. It
// simulates external damage.
func (m *FS) WriteFile(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = filepath.Clean(name)
	m.dirs[filepath.Dir(name)] = true
	n := newNode()
	n.write(data, 0)
	n.sync()
	m.forget(name)
	m.names[name], m.durable[name] = n, n
}

// Delete removes a file durably, without faults.
func (m *FS) Delete(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = filepath.Clean(name)
	m.forget(name)
	delete(m.names, name)
	delete(m.durable, name)
}

// forget drops the unsynced changes of a name.
func (m *FS) forget(name string) {
	m.changes = slices.DeleteFunc(m.changes, func(c change) bool { return c.from == name || c.to == name })
}

// FlipBit inverts one bit of a file, on disk and for readers. Bits count from the
// lowest bit of the first byte. A bit beyond the end changes nothing.
func (m *FS) FlipBit(name string, bit int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[filepath.Clean(name)]
	if n == nil || bit < 0 {
		return
	}
	at, mask := bit/8, byte(1)<<(bit%8)
	if at < int64(len(n.data)) {
		n.data[at] ^= mask
	}
	if at < int64(len(n.durable)) {
		n.durable[at] ^= mask
	}
}
