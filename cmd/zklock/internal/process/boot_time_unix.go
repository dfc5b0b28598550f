//go:build unix

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootTime returns the time since the machine started. All processes of a machine can compare
// its readings: the wrapper (the process of zklock run) sends its watchdog a deadline on this
// clock, because the monotonic clock of package time has no zero that another process knows.
// On Linux and macOS it includes suspends; on most BSDs it does not.
//
// If the system does not have the clock, BootTime returns 0, so that a deadline never passes by
// mistake; the watchdog then protects less.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(bootClock, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
