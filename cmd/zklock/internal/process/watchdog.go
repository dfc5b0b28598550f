package process

// The watchdog ends a command if its wrapper was killed, or is stopped past the deadline
// of its lock.
//
// The watchdog is a small process in its own session, so that a signal that stops the
// wrapper's job does not stop it. The wrapper writes lines to its standard input:
//
//	wrapper N           the process id of the wrapper
//	variable KEY=VALUE  a variable that only the processes of this command have
//	group N             the process group of the command
//	until N             when the group must be dead, in nanoseconds of the boot clock
//	bye                 the command has ended
//
// At that time, or when the input ends without "bye", the watchdog kills the group. It
// also kills the processes outside of the group that descendants.go finds then, or found
// at the last "until". If the wrapper has died, nothing adopts their orphans. So the watchdog
// then also kills the processes that have inherited the variables.
//
// Neither the name nor the command line of the watchdog contains "zklock", so that
// "pkill -9 -f zklock" does not end it together with the wrapper.

// WatchdogArgument is the hidden first argument of the watchdog process.
const WatchdogArgument = "__watchdog"

// WatchdogName is the name of the watchdog process, at most 15 bytes.
const WatchdogName = "zkl-watchdog"

// Variables that are together the same only for the processes of one command: its session
// and its fencing token.
const (
	EnvSession = "ZKLOCK_SESSION"
	EnvToken   = "ZKLOCK_TOKEN"
)
