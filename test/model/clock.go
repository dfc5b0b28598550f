package model

import "golang.org/x/sys/unix"

// Monotonic returns CLOCK_MONOTONIC in nanoseconds, which all processes of a machine
// share and which no setting of the wall clock moves. Package time shows it only
// relative to the start of a process.
func Monotonic() int64 {
	var ts unix.Timespec
	// It fails for unknown clocks only.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
