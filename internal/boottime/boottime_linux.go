package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootReading reads CLOCK_BOOTTIME (clock_gettime(2)). All kernels that Go supports
// have it, but a sandbox may refuse the call.
func bootReading() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
