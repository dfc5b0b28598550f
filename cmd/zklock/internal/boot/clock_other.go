//go:build !unix

package boot

import "time"

// start is the zero of this process's clock.
var start = time.Now()

// Now returns the time since this process started. There is no watchdog on
// these systems that would need to compare.
func Now() time.Duration { return time.Since(start) }
