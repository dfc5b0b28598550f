// Package child runs the command that a lock is held for: in a process group of
// its own, so that all of it can be told and ended at once, and so that it dies
// with the process that holds its lock.
package child

import "errors"

// Argument is the hidden first argument of a process that is to become the
// command, see Begin.
const Argument = "__begin"

// Errors of Find and Start, which decide the exit code.
var (
	ErrNotFound      = errors.New("command not found")  // 127
	ErrNotExecutable = errors.New("cannot be executed") // 126
)

// Command is what to run.
type Command struct {
	Path string   // the executable, as Find returned it
	Args []string // with the name it was called by as Args[0]
	Env  []string // "KEY=value"; nil means none at all
}

// Exit is how a command ended.
type Exit struct {
	Code   int // its own exit code, -1 if a signal ended it
	Signal int // the signal that ended it, 0 if none
}

// Status is the exit code that a shell would show: 128+n after signal n.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + e.Signal
	}
	return e.Code
}
