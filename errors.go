package zklock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// Errors of this package. Use errors.Is to find them in the errors that its functions
// return, together with errors of packages zk and context.
var (
	// ErrLocked means that TryAcquire found the lock held or waited for.
	ErrLocked = errors.New("zklock: the lock is held or waited for")
	// ErrLost means that the hold ended without a Release. Stop the work that the
	// lock guards.
	ErrLost = errors.New("zklock: the hold is lost")
	// ErrDeleted means that a hold was lost because another client deleted its znode.
	// An Error wraps it together with ErrLost.
	ErrDeleted = queue.ErrGone
	// ErrNoQuorum means that no quorum of the servers answered in time, so that a
	// hold is lost or in jeopardy. If the hold is lost, an Error wraps it together
	// with ErrLost.
	ErrNoQuorum = queue.ErrDeadline
	// ErrReleased means that the hold ended by Release.
	ErrReleased = errors.New("zklock: the hold was released")
	// ErrClosed means that the client is closed.
	ErrClosed = errors.New("zklock: the client is closed")
	// ErrInvalidName means that no lock can have this name.
	ErrInvalidName = errors.New("zklock: invalid lock name")
	// ErrInvalidOptions means that a field of Options has an impossible value.
	ErrInvalidOptions = errors.New("zklock: invalid options")
	// ErrInvalidLock means that the lock does not support the operation, or that its
	// parameters are invalid: a semaphore of no permits, an All of one path twice, a
	// Downgrade of a hold that is not a writer's, and so on.
	ErrInvalidLock = errors.New("zklock: invalid use of a lock")
	// ErrReentry means that a lock that is not Reentrant was acquired with the
	// context of its own hold. It would wait for itself forever.
	ErrReentry = errors.New("zklock: the caller already holds the lock and would wait for itself; use Reentrant")
	// ErrUpgrade means that an exclusive hold was requested under the caller's own
	// shared hold. It could never be granted.
	ErrUpgrade = errors.New("zklock: the caller holds the lock as a reader and cannot become a writer; release it first")
	// ErrPermits means that other clients use the semaphore with another number of
	// permits.
	ErrPermits = errors.New("zklock: other clients use this semaphore with another number of permits; all must use the same")
	// ErrSize means that a [Client.ResizableSemaphore] has no size, or that its size is
	// smaller than the number of permits that the acquire needs.
	ErrSize = errors.New("zklock: the semaphore has no usable size")
	// ErrForeignMutex means that a reader found entries of Curator's
	// InterProcessMutex, of kazoo's Lock, or of ZooKeeper's WriteLock on its path, or
	// such names of a zklock client with a custom layout. These do not wait for readers.
	// For kazoo's Lock, see also [KazooLayout].
	ErrForeignMutex = errors.New("zklock: a mutex of another library on this path does not wait for readers; use its read-write lock, or set AllowForeignMutex")
	// ErrWriteLock means that a writer, or a mutex in kazoo's layout, found entries
	// of ZooKeeper's WriteLock on its path. These wait only for names that end in a
	// hyphen and a number.
	ErrWriteLock = errors.New("zklock: ZooKeeper's WriteLock on this path does not wait for entries with these names; use Mutex, in WriteLockLayout or Curator's")
	// ErrInvalidRun means that the znode that should contain the last run of a lock, see
	// [Hold.RecordRun], contains something else.
	ErrInvalidRun = errors.New("zklock: the znode does not contain a run")
	// ErrTooLarge means that the owner's data is larger than 4 KiB.
	ErrTooLarge = errors.New("zklock: the owner's data is larger than 4 KiB")
	// ErrSequenceExhausted means that the sequence numbers below the znode of the
	// lock are used up, or that a child has an impossible one. Beyond the limit, two
	// clients could hold the lock, so no client gets it: delete the znode that the error
	// names while no client uses it.
	ErrSequenceExhausted = errors.New("zklock: the sequence numbers of this lock are used up or damaged; while no client uses it, delete the znode")
)

// An Error is the type of the errors that this package returns.
type Error struct {
	Op   string // what was tried: "acquire", "release", "verify", "guard", "inspect", "dial", "hold", ...
	Path string // the path of the lock; may be empty
	Err  error  // the reason
}

// Error returns the operation, the path, and the reason. An unreadable path is quoted,
// and a long one is cut. If the reason is an Error about the same path, only the reason of that
// Error is named.
func (e *Error) Error() string {
	reason := e.Err
	if inner, ok := reason.(*Error); ok && inner.Path == e.Path {
		reason = inner.Err
	}
	why := strings.TrimPrefix(reason.Error(), "zklock: ")
	if e.Path == "" {
		return "zklock: " + e.Op + ": " + why
	}
	return "zklock: " + e.Op + " " + legible.Path(e.Path) + ": " + why
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// A lockedError is ErrLocked with the name of the holder.
type lockedError struct {
	holder string
	age    time.Duration // of the holder's entry
}

func (e *lockedError) Error() string {
	text := "zklock: held by " + e.holder
	switch {
	case e.age >= time.Second:
		text += " for " + e.age.Truncate(time.Second).String()
	case e.age >= 0:
		text += " for less than a second"
	}
	return text
}

func (e *lockedError) Is(target error) bool { return target == ErrLocked }

// publicError translates an error of the core into one that users can find.
func publicError(err error) error {
	if e, ok := errors.AsType[*queue.ExhaustedError](err); ok {
		return fmt.Errorf("%w: %s", ErrSequenceExhausted, legible.Path(e.Parent))
	}
	switch {
	case errors.Is(err, queue.ErrLocked):
		return ErrLocked
	case errors.Is(err, queue.ErrPermits):
		return ErrPermits
	case errors.Is(err, queue.ErrSize):
		return sizeError(err)
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

// lostError returns the error of a hold that ended without a release, or before it.
func lostError(op, path string, why error) error {
	return &Error{Op: op, Path: path, Err: fmt.Errorf("%w: %w", ErrLost, publicError(why))}
}
