//go:build !planted

package plant

// Enabled reports whether this build has the bugs in it: it has not.
const Enabled = false

// Is reports whether a bug is live in this process: never, in this build. It is
// inlined, and what depends on it is left out of the binary.
func Is(Bug) bool { return false }
