package boot

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine started, suspends included. Any
// goroutine and any process may compare readings of one machine.
func Now() time.Duration { return read(unix.CLOCK_BOOTTIME) }
