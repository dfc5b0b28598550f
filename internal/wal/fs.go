package wal

import "io"

// FS is the little of a file system that a log needs. [OS] is the real one;
// package memfs has an in-memory one that crashes and fails on request. Names
// are paths in the form of package path/filepath. Implementations are safe
// for concurrent use.
type FS interface {
	// MkdirAll makes a directory and its parents, durably. One that exists
	// already is no error, unless another user could change the files in it.
	MkdirAll(dir string) error
	// Create makes an empty file for reading and writing in place of any that is
	// there. If the process has no descriptor to spare, it fails before it changes
	// anything: see [OutOfDescriptors].
	Create(name string) (File, error)
	// Open opens an existing file for reading, also where nothing can be written.
	Open(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)
	// Rename moves a file, replacing the one at the new name. It is durable
	// after the directory's Sync, and atomic in a crash before.
	Rename(oldname, newname string) error
	// Remove removes a file; durable after the directory's Sync.
	Remove(name string) error
	// ReadDir lists the names in a directory, in any order.
	ReadDir(dir string) ([]string, error)
	// OpenDir opens a directory, to sync it later without a further descriptor.
	OpenDir(dir string) (Dir, error)
	// Lock takes the file as a lock against other processes, creating it if
	// need be, and never waits: an error that wraps [ErrLocked] says that
	// another one has it. Closing the result gives it up, and so does the
	// end of the process.
	Lock(name string) (Lock, error)
}

// Dir is an open directory of an [FS].
type Dir interface {
	io.Closer
	// Sync makes creations, renames and removals in the directory durable.
	Sync() error
}

// Lock is a lock that is held.
type Lock interface {
	io.Closer
	// Check says whether the lock still keeps others off: an error that wraps
	// [ErrLockLost] says that its file was removed or replaced, so that
	// another process can have taken it.
	Check() error
}

// cacher is a [File] that can be read from the disk instead of from memory.
type cacher interface {
	// DropCache makes the next reads come from the disk, as far as what was
	// written is synced. It is a wish: nothing rests on it.
	DropCache() error
}

// File is an open file of an [FS].
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size is the length in bytes.
	Size() (int64, error)
	// Truncate sets the length in bytes; what is added reads as zeros.
	Truncate(size int64) error
	// Sync makes content and length durable, as fdatasync(2) does. After an
	// error what was written may be lost although a later Sync succeeds.
	Sync() error
}
