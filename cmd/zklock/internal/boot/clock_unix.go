//go:build unix && !linux

package boot

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since some moment at the machine's start. On macOS it
// counts through a suspend, on the BSDs mostly not.
func Now() time.Duration { return read(unix.CLOCK_MONOTONIC) }
