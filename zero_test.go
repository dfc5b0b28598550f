package zklock_test

import (
	"context"
	"testing"

	"github.com/zklock/zklock"
)

// TestZeroLocks: what no client made fails with an error, and whatever is made of
// it.
func TestZeroLocks(t *testing.T) {
	var none *zklock.Lock
	for what, l := range map[string]*zklock.Lock{
		"nil":           none,
		"zero":          {},
		"zero reader":   (&zklock.RWMutex{}).Reader(),
		"zero writer":   (&zklock.RWMutex{}).Writer(),
		"an All of nil": zklock.All(none),
		"of a zero one": zklock.All(&zklock.Lock{}),
		"of nothing":    zklock.All(),
		"reentrant":     none.Reentrant(),
		"permits":       none.Permits(1),
		"in order":      none.InOrder(),
	} {
		_, err := l.Acquire(t.Context())
		wants(t, what, err, zklock.ErrInvalidLock)
		_, err = l.TryAcquire(t.Context())
		wants(t, what+", tried", err, zklock.ErrInvalidLock)
		_, err = l.Inspect(t.Context())
		wants(t, what+", inspected", err, zklock.ErrInvalidLock)
		_, err = l.Revoke(t.Context())
		wants(t, what+", revoked", err, zklock.ErrInvalidLock)
		err = zklock.Do(t.Context(), l.Reentrant(), func(context.Context, *zklock.Hold) error { return nil })
		wants(t, what+", reentrant, done", err, zklock.ErrInvalidLock)
		if l.Path() != "" || l.String() != "" {
			t.Errorf("%s is called %q", what, l)
		}
	}
}
