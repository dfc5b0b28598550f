package queue

import "errors"

// Reasons why an acquire failed or a hold was lost. The root package translates them to
// its public errors.
var (
	ErrLocked    = errors.New("held by another client")
	ErrDeadline  = errors.New("no quorum answered in time")
	ErrGone      = errors.New("the lock's znode was deleted by another client")
	ErrExpired   = errors.New("the session expired")
	ErrClosed    = errors.New("the client is closed")
	ErrUnproven  = errors.New("the connection was lost before the answer")
	ErrOwner     = errors.New("the server reported another session as the owner of a new znode")
	ErrCreated   = errors.New("the server reported an impossible name or transaction id of a new znode")
	ErrParents   = errors.New("the lock's parent znode is deleted repeatedly")
	ErrNotWriter = errors.New("not a writer's hold")
	ErrPermits   = errors.New("other clients use this semaphore with another number of permits")
	ErrSize      = errors.New("the semaphore has no usable size")
	ErrForeign   = errors.New("the queue has exclusive entries of another library, which do not wait for readers")
	ErrWriteLock = errors.New("the queue has entries of ZooKeeper's WriteLock, which do not wait for entries of this layout")
	ErrNotHeld   = errors.New("not held")
)

// ExhaustedError means that the sequence numbers of a znode are used up or damaged.
type ExhaustedError struct {
	Parent string // one of several queues, or a part of a semaphore
}

// Error implements error.
func (e *ExhaustedError) Error() string {
	return "the sequence numbers of this path are used up or damaged: " + e.Parent
}
