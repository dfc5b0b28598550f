package bench

import "sync"

// exclusion checks that no other contender holds the lock together with a writer. It does
// not depend on the recipe, so it can check all of them. Its methods may be called from
// any goroutine.
type exclusion struct {
	mu      sync.Mutex
	readers int  // how many hold for reading
	writers int  // how many hold alone, which should be one at most
	broken  bool // for good, once it was: figures of a broken lock mean nothing
}

// grant takes note of a new holder and reports whether it may be one.
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

// leave takes note of a holder who is about to leave: before it does, since the
// next one may be granted before the servers' answer is there.
func (x *exclusion) leave(write bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if write {
		x.writers--
	} else {
		x.readers--
	}
}
