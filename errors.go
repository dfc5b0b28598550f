package zklock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// Errors of this package. They are found with errors.Is in what its functions
// return; so are the errors of package zk and of package context beneath them.
var (
	// ErrLocked: TryAcquire found the lock held or waited for.
	ErrLocked = errors.New("zklock: the lock is held by another")
	// ErrLost: the hold ended without a Release. Stop what the lock guards.
	ErrLost = errors.New("zklock: the hold is lost")
	// ErrDeleted is why a hold was lost: somebody deleted its znode. It stands beside
	// ErrLost in an Error.
	ErrDeleted = queue.ErrGone
	// ErrNoQuorum is why a hold was lost, beside ErrLost, or is in jeopardy: no quorum
	// of the servers answered in time.
	ErrNoQuorum = queue.ErrDeadline
	// ErrReleased: the hold ended by Release.
	ErrReleased = errors.New("zklock: the hold was released")
	// ErrClosed: the client is closed.
	ErrClosed = errors.New("zklock: the client is closed")
	// ErrInvalidName: no lock can have this name.
	ErrInvalidName = errors.New("zklock: invalid lock name")
	// ErrInvalidOptions: a field of Options has an impossible value.
	ErrInvalidOptions = errors.New("zklock: invalid options")
	// ErrInvalidLock: the lock can't be what it was asked to be: a semaphore of no
	// permits, an All of one path twice, a Downgrade of no writer, ...
	ErrInvalidLock = errors.New("zklock: invalid use of a lock")
	// ErrReentry: a lock that is not Reentrant was acquired under the context of
	// its own hold. It would wait for itself for ever.
	ErrReentry = errors.New("zklock: the caller holds the lock already, and would wait for itself; use Reentrant")
	// ErrUpgrade: an exclusive hold was asked for under the caller's own shared
	// one. It could never be granted.
	ErrUpgrade = errors.New("zklock: the caller holds the lock as a reader, which can't become a writer's hold; release it first")
	// ErrPermits: others use the semaphore with another number of permits.
	ErrPermits = errors.New("zklock: others use this semaphore with another number of permits; all must use the same")
	// ErrForeignMutex: a reader found entries of Curator's InterProcessMutex, of kazoo's
	// Lock or of ZooKeeper's WriteLock on its path, which do not wait for readers.
	ErrForeignMutex = errors.New("zklock: a mutex of another library on this path does not heed readers; use its read-write lock, or set SharedBesideForeign")
	// ErrWriteLock: a writer, or a mutex in kazoo's layout, found entries of ZooKeeper's
	// WriteLock on its path. These wait only for names that end in a hyphen and a number.
	ErrWriteLock = errors.New("zklock: ZooKeeper's WriteLock on this path does not wait for entries with these names; use Mutex, in WriteLockLayout or Curator's")
	// ErrTooLarge: the owner's data are more than 4 KiB.
	ErrTooLarge = errors.New("zklock: the owner's data are larger than 4 KiB")
	// ErrSequenceExhausted: the sequence numbers below the lock's znode are used
	// up, or a child has an impossible one. Past the limit two clients could hold
	// the lock, so nobody gets it: delete the lock's znode while nobody uses it.
	ErrSequenceExhausted = errors.New("zklock: the sequence numbers of this lock are used up or damaged; delete its znode while nobody uses it")
)

// An Error is what the functions and methods of this package return.
type Error struct {
	Op   string // what was tried: "acquire", "release", "verify", "guard", "inspect", "dial", "hold", ...
	Path string // the lock's path; may be empty
	Err  error  // why
}

// Error returns the operation, the path and the reason. A path that can't be read
// is quoted, and a long one cut.
func (e *Error) Error() string {
	why := strings.TrimPrefix(e.Err.Error(), "zklock: ")
	if e.Path == "" {
		return "zklock: " + e.Op + ": " + why
	}
	return "zklock: " + e.Op + " " + legible.Path(e.Path) + ": " + why
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// public turns a reason of the lock's core into what users can look for.
func public(err error) error {
	switch {
	case errors.Is(err, queue.ErrLocked):
		return ErrLocked
	case errors.Is(err, queue.ErrExhausted):
		return ErrSequenceExhausted
	case errors.Is(err, queue.ErrPermits):
		return ErrPermits
	case errors.Is(err, queue.ErrForeign):
		return ErrForeignMutex
	case errors.Is(err, queue.ErrWriteLock):
		return ErrWriteLock
	case errors.Is(err, queue.ErrExpired):
		return zk.ErrSessionExpired
	case errors.Is(err, queue.ErrClosed), errors.Is(err, zk.ErrClosed):
		return ErrClosed
	case errors.Is(err, queue.ErrUnproven):
		return zk.ErrConnectionLost
	}
	return err
}

// lost is the error of a hold that ended without a release, or before it.
func lost(op, path string, why error) error {
	return &Error{Op: op, Path: path, Err: fmt.Errorf("%w: %w", ErrLost, public(why))}
}
