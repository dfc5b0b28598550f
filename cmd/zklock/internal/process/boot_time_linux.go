package process

import "golang.org/x/sys/unix"

// bootClock is the clock of BootTime.
const bootClock = unix.CLOCK_BOOTTIME
