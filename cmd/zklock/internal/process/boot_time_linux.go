package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootTime returns the time since the machine started, including suspends. All processes
// of a machine can compare its readings.
func BootTime() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }
