package model

import "golang.org/x/sys/unix"

// Monotonic returns CLOCK_MONOTONIC in nanoseconds. All processes of a machine share this
// clock, and changes of the wall clock do not affect it. Package time shows it only
// relative to the start of a process.
func Monotonic() int64 {
	var ts unix.Timespec
	// The call fails only for unknown clocks.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
