package bench

import "sync"

// exclusion checks that no other contender holds the lock together with a writer. It does
// not depend on the recipe, so it can check all of them. It is safe for concurrent use.
type exclusion struct {
	mu      sync.Mutex
	readers int  // number of readers that hold the lock
	writers int  // number of writers that hold the lock, at most one if the lock works
	broken  bool // set permanently by a violation: the figures of a broken lock are meaningless
}

// grant records a new holder and reports whether it may hold the lock.
func (x *exclusion) grant(write bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if write {
		x.writers++
	} else {
		x.readers++
	}
	if x.writers > 1 || x.writers == 1 && x.readers > 0 {
		x.broken = true
	}
	return !x.broken
}

// leave records that a holder is about to release. The caller calls it before the release,
// because the servers can grant the lock to the next holder before they answer.
func (x *exclusion) leave(write bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if write {
		x.writers--
	} else {
		x.readers--
	}
}
