package lockwork

import (
	"context"
	"errors"
)

// A Library is a way to lock. Open opens one session with the servers.
type Library interface {
	Open(ctx context.Context, servers string) (Session, error)
}

// A Looper is a library that has its own loop for a work in which every worker has its own
// session and all want the same lock, or all use one session and every worker has its own lock.
type Looper interface {
	Loop(ctx context.Context, servers string, w Work) (Result, error)
}

// A Session is one client of the servers. It is safe for concurrent use.
type Session interface {
	// Lock returns one worker's handle of a lock, for reading if reader is true. An error
	// that wraps [ErrUnsupported] means that the library has no such lock.
	Lock(path string, w *Work, reader bool) (Lock, error)
	// Count returns the number of contenders of a mutex: its holder and its waiters.
	Count(ctx context.Context, path string) (int, error)
	Close() error
}

// A Lock must be used by one goroutine only.
type Lock interface {
	Acquire(ctx context.Context) error
	Release(ctx context.Context) error
}

// An AsyncLock can be released without waiting for the servers' answer. The release is as
// reliable as Release.
type AsyncLock interface {
	Lock
	ReleaseAsync()
}

// ErrUnsupported is wrapped by errors about features that a library does not have.
var ErrUnsupported = errors.New("lockwork: the library does not have this")
