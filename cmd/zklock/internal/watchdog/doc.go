// Package watchdog ends a command whose wrapper cannot: one that was killed,
// or stopped past the deadline of its lock.
//
// The watchdog is a small process in a session of its own, so that nothing
// that stops the wrapper's job stops it too. The wrapper writes lines to its
// standard input: "wrapper N" names the wrapper, "group N" the process group,
// "until N" the moment (in nanoseconds of the boot clock) at which the group must be
// dead, "bye" that all is well. At that moment, or when the input ends without a
// good-bye, the watchdog kills the group, and what the command has started outside
// of it as far as package kin finds it, now or when "until" was last told.
//
// Nothing in the watchdog's name or command line has "zklock" in it, so that
// "pkill -9 -f zklock" ends the wrapper and not what guards its command.
package watchdog

import "github.com/zklock/zklock/cmd/zklock/internal/kin"

// Argument is the hidden first argument of the watchdog's process.
const Argument = kin.WatchdogArgument

// Name is what the watchdog's process is called, 15 bytes at most.
const Name = "zkl-watchdog"
