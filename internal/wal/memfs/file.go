package memfs

import (
	"io"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"github.com/zklock/zklock/internal/wal"
)

// blockSize is the size that a disk writes atomically.
const blockSize = 512

// node is a file independent of its name: what programs see, and what is on disk.
type node struct {
	data    []byte
	durable []byte
	dirty   map[int]bool // blocks of data that the next sync writes
	alloc   map[int]bool // blocks that use space
}

// newNode returns an empty file that is not on disk.
func newNode() *node {
	return &node{dirty: make(map[int]bool), alloc: make(map[int]bool)}
}

// clone copies what programs see and what is on disk.
func (n *node) clone() *node {
	return &node{
		data: slices.Clone(n.data), durable: slices.Clone(n.durable),
		dirty: maps.Clone(n.dirty), alloc: maps.Clone(n.alloc),
	}
}

// blocks returns the range of blocks with bytes in [from, to).
func blocks(from, to int) (first, last int) {
	return from / blockSize, (to + blockSize - 1) / blockSize
}

// resize sets the length that programs see. Added bytes are dirty, because zeros must
// replace what the disk may have there.
func (n *node) resize(size int) {
	old := len(n.data)
	if size <= old {
		n.data = n.data[:size]
		_, keep := blocks(0, size)
		// Blocks beyond the end need no write. If the file grows again, they become
		// dirty again, with zeros.
		maps.DeleteFunc(n.dirty, func(b int, _ bool) bool { return b >= keep })
		maps.DeleteFunc(n.alloc, func(b int, _ bool) bool { return b >= keep })
		return
	}
	n.data = append(n.data, make([]byte, size-old)...)
	first, last := blocks(old, size)
	for b := first; b < last; b++ {
		n.dirty[b] = true
	}
}

// write writes p at off, and extends the file if necessary.
func (n *node) write(p []byte, off int) {
	if end := off + len(p); end > len(n.data) {
		n.resize(end)
	}
	copy(n.data[off:], p)
	first, last := blocks(off, off+len(p))
	for b := first; b < last; b++ {
		n.dirty[b], n.alloc[b] = true, true
	}
}

// flush makes one block durable, up to the durable length.
func (n *node) flush(block int) {
	from := block * blockSize
	// A block beyond the durable length is lost until the length is synced.
	if from < len(n.durable) && from < len(n.data) {
		copy(n.durable[from:], n.data[from:min(from+blockSize, len(n.data))])
	}
}

// setDurableSize sets the length on disk. Added bytes are zeros.
func (n *node) setDurableSize(size int) {
	if size <= len(n.durable) {
		n.durable = n.durable[:size]
		return
	}
	n.durable = append(n.durable, make([]byte, size-len(n.durable))...)
}

// sync makes everything dirty durable.
func (n *node) sync() {
	// The length comes first, because flush writes only within it.
	n.setDurableSize(len(n.data))
	for b := range n.dirty {
		n.flush(b)
	}
	clear(n.dirty)
}

// file is an open file.
type file struct {
	fs     *FS
	name   string
	node   *node
	epoch  int
	closed bool

	readOnly bool // opened by Open
}

var _ wal.File = (*file)(nil)

// begin checks and counts an operation. The FS's mu must be held.
func (f *file) begin(op Op) Fault {
	op.Name = f.name
	switch {
	case f.closed:
		return Fault{Err: pathError(op.Kind.String(), f.name, fs.ErrClosed)}
	case f.epoch != f.fs.epoch:
		return Fault{Err: pathError(op.Kind.String(), f.name, ErrCrashed)}
	case f.readOnly && (op.Kind == OpWrite || op.Kind == OpTruncate):
		return Fault{Err: pathError(op.Kind.String(), f.name, fs.ErrPermission)}
	}
	return f.fs.begin(op)
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if ft := f.begin(Op{Kind: OpRead, Len: len(p)}); ft.Err != nil {
		return 0, ft.Err
	}
	if off < 0 || off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt. A fault may let a part of the data through.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	ft := f.begin(Op{Kind: OpWrite, Len: len(p)})
	if off < 0 || off > 1<<40 {
		return 0, pathError("write", f.name, fs.ErrInvalid)
	}
	// Like a real short write, this writes what fits or what the fault permits.
	keep := len(p)
	if ft.Err != nil {
		keep = max(0, min(ft.Keep, len(p)))
	} else if room := f.fs.freeSpace(f.node, int(off), len(p)); room < len(p) {
		keep, ft.Err = room, pathError("write", f.name, syscall.ENOSPC)
	}
	if keep > 0 {
		f.node.write(p[:keep], int(off))
	}
	return keep, ft.Err
}

// FreeSpace returns how many more bytes fit into the limit, if there is one.
func (f *file) FreeSpace() (free int64, known bool) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return max(0, f.fs.limit-f.fs.used()), f.fs.limit > 0
}

// used returns the size of all blocks with content.
func (m *FS) used() (bytes int64) {
	seen := make(map[*node]bool)
	for _, o := range m.names {
		if !seen[o] {
			seen[o] = true
			bytes += int64(len(o.alloc)) * blockSize
		}
	}
	return bytes
}

// freeSpace returns how many of want bytes at off fit into the limit.
func (m *FS) freeSpace(n *node, off, want int) int {
	// Only blocks with content count, so holes use no space, as on a real file
	// system. Extending a file never fails, but writing into it may.
	if m.limit == 0 {
		return want
	}
	used := m.used()
	first, last := blocks(off, off+want)
	for b := first; b < last; b++ {
		if n.alloc[b] {
			continue
		}
		if used += blockSize; used > m.limit {
			return max(0, b*blockSize-off)
		}
	}
	return want
}

// Size implements wal.File.
func (f *file) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if ft := f.begin(Op{Kind: OpSize}); ft.Err != nil {
		return 0, ft.Err
	}
	return int64(len(f.node.data)), nil
}

// Truncate implements wal.File.
func (f *file) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if ft := f.begin(Op{Kind: OpTruncate}); ft.Err != nil {
		return ft.Err
	}
	if size < 0 || size > 1<<40 {
		return pathError("truncate", f.name, fs.ErrInvalid)
	}
	f.node.resize(int(size))
	return nil
}

// Sync implements wal.File. If it fails, random numbers decide which blocks are
// written. The rest counts as clean and no later Sync writes it, as in Linux's page
// cache.
func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	ft := f.begin(Op{Kind: OpSync})
	if ft.Err == nil {
		f.fs.syncs++
		f.node.sync()
		return nil
	}
	// A handle of an ended process does not change the file.
	if f.closed || f.epoch != f.fs.epoch {
		return ft.Err
	}
	// The length is journaled: a file that shrank does not become longer again while
	// it exists, but growth may be lost.
	if len(f.node.data) < len(f.node.durable) || f.fs.rand.IntN(2) == 0 {
		f.node.setDurableSize(len(f.node.data))
	}
	for _, b := range slices.Sorted(maps.Keys(f.node.dirty)) {
		if f.fs.rand.IntN(2) == 0 {
			f.node.flush(b)
		}
	}
	clear(f.node.dirty)
	return ft.Err
}

// Close implements io.Closer. It syncs nothing.
func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if ft := f.begin(Op{Kind: OpClose}); ft.Err != nil {
		return ft.Err
	}
	f.closed = true
	return nil
}
