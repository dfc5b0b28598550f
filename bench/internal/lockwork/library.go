package lockwork

import (
	"context"
	"errors"
)

// A Library is a way to lock. Open makes one session with the servers.
type Library interface {
	Open(ctx context.Context, servers string) (Session, error)
}

// A Looper is a library that does work with one lock in a loop of its own, with a session
// for each worker.
type Looper interface {
	Loop(ctx context.Context, servers string, w Work) (Result, error)
}

// A Session is one client of the servers. Its methods are for all goroutines.
type Session interface {
	// Lock gives one worker's handle of a lock; reader wants a reader's. An error
	// that wraps [ErrUnsupported] says that the library has no such lock.
	Lock(path string, w *Work, reader bool) (Lock, error)
	// Count is how many contenders a mutex has: its holder and those who wait.
	Count(ctx context.Context, path string) (int, error)
	Close() error
}

// A Lock is for one goroutine.
type Lock interface {
	Acquire(ctx context.Context) error
	Release(ctx context.Context) error
}

// An AsyncLock can be released without waiting for the servers' answer, as surely
// as otherwise.
type AsyncLock interface {
	Lock
	ReleaseAsync()
}

// ErrUnsupported is wrapped by errors about what a library does not have.
var ErrUnsupported = errors.New("lockwork: the library does not have this")
