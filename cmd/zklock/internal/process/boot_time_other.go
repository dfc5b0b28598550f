//go:build !unix

package process

import "time"

// processStart is the zero of this process's clock.
var processStart = time.Now()

// BootTime returns the time since this process started. These systems have no watchdog,
// so no other process compares it.
func BootTime() time.Duration { return time.Since(processStart) }
