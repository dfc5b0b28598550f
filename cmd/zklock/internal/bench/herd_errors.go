package bench

import "errors"

// Errors of this package. Compare with errors.Is, also the Err of a row.
var (
	// ErrConfig means that a field of HerdConfig has an invalid value.
	ErrConfig = errors.New("herd: invalid configuration")
	// ErrExclusion means that two clients held a lock at the same time, so the figures are
	// meaningless.
	ErrExclusion = errors.New("herd: two held the lock at a time; its recipe or the server is broken")
	// ErrDisturbed means that a connection was lost, so the count is invalid.
	ErrDisturbed = errors.New("herd: a connection was lost while counting; run it again, with fewer waiters if the servers are at their limit")
	// ErrBudget means that the time was over before anything could be counted.
	ErrBudget = errors.New("herd: the budget was over; give more time or fewer waiters")

	errGone = errors.New("herd: the own entry is not in the queue: another client deleted it")
)
