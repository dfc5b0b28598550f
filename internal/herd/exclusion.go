package herd

import "sync"

// exclusion watches that nobody holds beside a writer.
type exclusion struct {
	mu      sync.Mutex
	readers int
	writers int
	broken  bool
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

// leave takes note of a holder who is about to leave.
func (x *exclusion) leave(write bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if write {
		x.writers--
	} else {
		x.readers--
	}
}
