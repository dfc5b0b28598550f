//go:build unix && !linux

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootTime returns the time since about the start of the machine. On macOS it includes
// suspends; on most BSDs it does not.
func BootTime() time.Duration { return readClock(unix.CLOCK_MONOTONIC) }
