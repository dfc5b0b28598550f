// Package watchdog ends a command whose wrapper cannot: one that was killed,
// or stopped past the deadline of its lock.
//
// The watchdog is a small process in a session of its own, so that nothing
// that stops the wrapper's job stops it too. The wrapper writes lines to its
// standard input: "group N" names the process group, "until N" the moment (in
// nanoseconds of the boot clock) at which the group must be dead, "bye" that
// all is well. At that moment, or when the input ends without a good-bye, the
// watchdog kills the group, and what the command has started outside of it as far
// as package kin finds it, now or when "until" was last told.
package watchdog

// Argument is the hidden first argument of the watchdog's process.
const Argument = "__watchdog"
