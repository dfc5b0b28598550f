//go:build unix && !linux

package ownership

// unmapped returns -1: there are no user namespaces here.
func unmapped() int { return -1 }
