//go:build planted

package plant

import "os"

// Enabled reports whether this build has the bugs in it: it has.
const Enabled = true

// live is the bug that the process was started with, empty for none. It is read
// once, before main, so that a process has one behaviour from its start to its
// end; nothing writes it.
var live = Bug(os.Getenv("ZKLOCK_PLANT"))

// Is reports whether a bug is live in this process. It may be called from any
// goroutine.
func Is(b Bug) bool { return b == live }
