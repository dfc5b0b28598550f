package wal

import "io"

// FS is the part of a file system that a log needs. [OS] is the real one. Package
// memfs has one in memory that crashes and fails on request. Names are paths as in
// package path/filepath. Implementations are safe for concurrent use.
type FS interface {
	// MkdirAll creates a directory and its parents, durably. An existing directory is
	// accepted, unless another user could change the files in it.
	MkdirAll(dir string) error
	// Create creates an empty file for reading and writing, and replaces an existing
	// one. If the process has no free descriptor, it fails before it changes
	// anything: see [OutOfDescriptors].
	Create(name string) (File, error)
	// Open opens an existing file for reading. It works on a read-only file system
	// too.
	Open(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)
	// Rename renames a file and replaces the one at the new name. It is durable after
	// the directory's Sync, and atomic in a crash before that.
	Rename(oldname, newname string) error
	// Remove removes a file. That is durable after the directory's Sync.
	Remove(name string) error
	// ReadDir lists the names in a directory, in any order.
	ReadDir(dir string) ([]string, error)
	// OpenDir opens a directory, so that a later sync needs no further descriptor.
	OpenDir(dir string) (Dir, error)
	// Lock locks the file against other processes, and creates it if necessary. It
	// does not wait: if another process holds the lock, the error wraps [ErrLocked].
	// Closing the result releases the lock, and so does the end of the process.
	Lock(name string) (Lock, error)
}

// Dir is an open directory of an [FS].
type Dir interface {
	io.Closer
	// Sync makes creations, renames, and removals in the directory durable.
	Sync() error
}

// Lock is a lock that is held.
type Lock interface {
	io.Closer
	// Check returns an error that wraps [ErrLockLost] if the lock file was removed or
	// replaced, so that another process may have locked it.
	Check() error
}

// cacheDropper is a [File] that can be read from the disk instead of from the page
// cache.
type cacheDropper interface {
	// DropCache makes the next reads come from the disk, as far as the data is
	// synced. It is best effort.
	DropCache() error
}

// spaceTeller is a [File] that can tell how much space its disk has.
type spaceTeller interface {
	// FreeSpace returns how many more bytes the process may write to the disk, and
	// reports whether that is known.
	FreeSpace() (free int64, known bool)
}

// changeChecker is a [File] that can tell whether another process changed it, or could.
type changeChecker interface {
	// CheckLinks returns an error if the file has another hard link, so that a log in
	// another directory could write to it.
	CheckLinks() error
	// CheckName returns an error if the file was removed, renamed, or replaced, so that
	// the next start would not find what is written to it.
	CheckName() error
	// CheckContent returns an error if the file is shorter than size, or does not contain b
	// at this offset.
	CheckContent(size int64, b []byte, offset int64) error
}

// File is an open file of an [FS].
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Truncate sets the length in bytes. Added bytes read as zeros.
	Truncate(size int64) error
	// Sync makes content and length durable, like fdatasync(2). After an error the
	// data may be lost even if a later Sync succeeds.
	Sync() error
}
