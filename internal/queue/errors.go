package queue

import "errors"

// Why a claim failed or a hold was lost. The root package turns them into its
// own public errors.
var (
	ErrLocked    = errors.New("held by another")
	ErrExhausted = errors.New("the sequence numbers of this path are used up or damaged")
	ErrDeadline  = errors.New("no quorum answered in time")
	ErrGone      = errors.New("the lock's znode was deleted by somebody else")
	ErrExpired   = errors.New("the session expired")
	ErrClosed    = errors.New("the client is closed")
	ErrUnproven  = errors.New("the connection was lost before the answer")
	ErrOwner     = errors.New("the server named another session as owner of a znode just made")
	ErrParents   = errors.New("the lock's parent znode keeps vanishing")
	ErrNotWriter = errors.New("not a writer's hold")
	ErrPermits   = errors.New("others use this semaphore with another number of permits")
	ErrForeign   = errors.New("the queue has another library's exclusive entries, which do not heed readers")
	ErrWriteLock = errors.New("the queue has entries of ZooKeeper's WriteLock, which do not wait for this layout's")
	ErrNotHeld   = errors.New("not held")
)
