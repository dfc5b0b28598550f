// Package kin finds what a command has started outside of its own process
// group, so that it can be ended with the command.
//
// A signal to the group reaches none of these: timeout(1) puts itself into a
// group of its own, as a shell does with its jobs under "set -m", and setsid(1)
// and whatever makes a terminal go as far as a new session. They are found by
// their parents. A process whose parents have ended has a new one: the process that
// adopts orphans, which on Linux is the one that runs the command (see package
// child). So a daemon is found below that process as long as it runs.
package kin

// WatchdogArgument is the first argument of a watchdog's process, see package
// watchdog.
const WatchdogArgument = "__watchdog"

// Process is one process, told from a later one that has its number by when it
// started.
type Process struct {
	PID   int
	Group int    // its process group when it was found
	start uint64 // in the kernel's ticks since the machine started
}
