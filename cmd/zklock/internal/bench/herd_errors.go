package bench

import "errors"

// Errors of this package. They are found with errors.Is in what Run returns and
// in a row's Err.
var (
	// ErrConfig: a field of Config has an impossible value.
	ErrConfig = errors.New("herd: invalid configuration")
	// ErrExclusion: two held a lock at a time, so its figures mean nothing.
	ErrExclusion = errors.New("herd: two held the lock at a time; its recipe or the server is broken")
	// ErrDisturbed: a connection was lost, so the count is void.
	ErrDisturbed = errors.New("herd: a connection was lost while counting; run it again, with fewer waiters if the servers are at their limit")
	// ErrBudget: the time was over before anything could be counted.
	ErrBudget = errors.New("herd: the budget was over; give more time or fewer waiters")

	errGone = errors.New("herd: the own entry is not in the queue: another client deleted it")
)
