package memfs

import (
	"io/fs"
	"path/filepath"
	"slices"
)

// Kind is a kind of operation.
type Kind int

// The kinds of operation that are counted and can fail.
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

// String is the kind's name.
func (k Kind) String() string {
	names := [...]string{"mkdir", "create", "open", "rename", "remove", "readdir", "syncdir",
		"lock", "read", "write", "size", "truncate", "sync", "close", "openwrite", "opendir"}
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Op is an operation that is about to happen.
type Op struct {
	// N counts operations since New, from 0.
	N int
	// Kind is what it does.
	Kind Kind
	// Name is the path of the file or directory.
	Name string
	// Len is the number of bytes to read or write.
	Len int
}

// Fault is how an operation fails. The zero value means that it does not.
type Fault struct {
	// Err is what the operation gives.
	Err error
	// Keep is how many bytes of a write get through all the same.
	Keep int
}

// SetFault makes f decide about every operation from now on; nil ends that.
// f must not call the FS.
func (m *FS) SetFault(f func(Op) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// FailAt makes the operation that is n operations from now fail, 0 for the
// next one, and replaces what SetFault set. Writes let keep bytes through.
func (m *FS) FailAt(n int, err error, keep int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// By number and not by countdown: the decision has no state, so that a
	// script can be asked about one operation twice.
	at := m.ops + n
	m.fault = func(op Op) Fault {
		if op.N != at {
			return Fault{}
		}
		return Fault{Err: pathError(op.Kind.String(), op.Name, err), Keep: keep}
	}
}

// begin counts an operation and asks for its fault. Called with mu held.
func (m *FS) begin(op Op) Fault {
	// Failed operations count as well: the sweep over all of them must reach
	// each one.
	op.N = m.ops
	m.ops++
	if m.fault == nil {
		return Fault{}
	}
	return m.fault(op)
}

// SetLimit sets how many bytes of blocks all files may have, 0 for no limit;
// a write beyond is short and gives syscall.ENOSPC. Holes take no space.
func (m *FS) SetLimit(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = bytes
}

// Ops counts the operations so far.
func (m *FS) Ops() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// Syncs counts the successful syncs of files and directories so far.
func (m *FS) Syncs() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.syncs
}

// ReadFile gives a copy of a file's content as programs see it.
func (m *FS) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[filepath.Clean(name)]
	if n == nil {
		return nil, pathError("open", name, fs.ErrNotExist)
	}
	return slices.Clone(n.data), nil
}

// WriteFile replaces a file and its directory's entry, durably, whatever the
// faults are: damage from outside.
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

// Delete removes a file durably, whatever the faults are.
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

// FlipBit turns one bit of a file over, on disk and for readers. Bits count
// from the lowest of the first byte; one beyond the end changes nothing.
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
