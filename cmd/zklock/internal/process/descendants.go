package process

// descendants*.go find the processes that a command has started outside of its process
// group, so that they can be ended together with the command.
//
// A signal to the group does not reach them: timeout(1) and the jobs of a shell under
// "set -m" have their own groups, and setsid(1) and terminal programs make new sessions.
// They are found through their parents. The kernel gives an orphan to the process that
// adopts orphans. On Linux that is the process that runs the command (see child_unix.go),
// so a daemon stays below that process.

// Process identifies a process. The start time tells it from a later process with the
// same number.
type Process struct {
	PID     int
	Group   int    // its process group when it was found
	session int    // likewise; 0 if unknown, or if its leader is outside this PID namespace
	start   uint64 // ticks of the kernel since the machine started
}
