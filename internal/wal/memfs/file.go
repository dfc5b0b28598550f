package memfs

import (
	"io"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"github.com/zklock/zklock/internal/wal"
)

// blockSize is what a disk writes whole or not at all.
const blockSize = 512

// node is a file whatever its name: what programs see, and what is on disk.
type node struct {
	data    []byte
	durable []byte
	dirty   map[int]bool // blocks of data that the next sync writes
	alloc   map[int]bool // blocks that take space
}

// newNode is an empty file that nothing on disk knows of.
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

// blocks are the numbers of the blocks with bytes in [from, to).
func blocks(from, to int) (first, last int) {
	return from / blockSize, (to + blockSize - 1) / blockSize
}

// resize sets the length that programs see. What is added is dirty: zeros
// must replace what the disk may have there.
func (n *node) resize(size int) {
	old := len(n.data)
	if size <= old {
		n.data = n.data[:size]
		_, keep := blocks(0, size)
		// Blocks beyond the end have nothing left to write. If the file grows
		// again they are dirty again, with zeros.
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

// write puts p at off, growing the file if need be.
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

// flush makes one block of what programs see durable, as far as the durable
// length goes.
func (n *node) flush(block int) {
	from := block * blockSize
	// A block beyond the durable length is lost until the length is synced.
	if from < len(n.durable) && from < len(n.data) {
		copy(n.durable[from:], n.data[from:min(from+blockSize, len(n.data))])
	}
}

// setDurableSize sets the length on disk; what is added is zeros.
func (n *node) setDurableSize(size int) {
	if size <= len(n.durable) {
		n.durable = n.durable[:size]
		return
	}
	n.durable = append(n.durable, make([]byte, size-len(n.durable))...)
}

// sync makes everything dirty durable.
func (n *node) sync() {
	// The length first, since flush writes only within it.
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

// begin counts and checks an operation. Called with the FS's mu held.
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

// WriteAt implements io.WriterAt. A fault may let a part through.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	ft := f.begin(Op{Kind: OpWrite, Len: len(p)})
	if off < 0 || off > 1<<40 {
		return 0, pathError("write", f.name, fs.ErrInvalid)
	}
	// What fits or what the fault lets through is written all the same, as a
	// real short write is.
	keep := len(p)
	if ft.Err != nil {
		keep = max(0, min(ft.Keep, len(p)))
	} else if room := f.fs.room(f.node, int(off), len(p)); room < len(p) {
		keep, ft.Err = room, pathError("write", f.name, syscall.ENOSPC)
	}
	if keep > 0 {
		f.node.write(p[:keep], int(off))
	}
	return keep, ft.Err
}

// room is how many of want bytes at off there is space for.
func (m *FS) room(n *node, off, want int) int {
	// Counting is by blocks with content, so that holes are free as on a real
	// file system: growing a file ahead never fails, writing into it may.
	if m.limit == 0 {
		return want
	}
	var used int64
	seen := make(map[*node]bool)
	for _, o := range m.names {
		if !seen[o] {
			seen[o] = true
			used += int64(len(o.alloc)) * blockSize
		}
	}
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

// Sync implements wal.File. When it fails, chance decides block by block
// what got to the disk, and the rest is taken for clean: no later Sync
// writes it, as with Linux's page cache.
func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	ft := f.begin(Op{Kind: OpSync})
	if ft.Err == nil {
		f.fs.syncs++
		f.node.sync()
		return nil
	}
	// A handle of a dead process does nothing to the file.
	if f.closed || f.epoch != f.fs.epoch {
		return ft.Err
	}
	// A length goes through the journal: one that shrank is not seen longer
	// again while the file stays, one that grew may be lost.
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
