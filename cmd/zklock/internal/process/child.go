package process

import "errors"

// child*.go start the command under a lock. The command gets its own process group, so
// that one signal reaches all of it, and it dies together with the process that holds the
// lock.

// ChildArgument is the hidden first argument of a process that becomes the command, see
// ChildMain.
const ChildArgument = "__begin"

// Errors of FindCommand and StartCommand, which decide the exit code.
var (
	ErrNotFound      = errors.New("command not found")  // 127
	ErrNotExecutable = errors.New("cannot be executed") // 126
)

// ErrEnded means that a signal ended the process of a command before the command began.
var ErrEnded = errors.New("the process has ended")

// Command is a command to run.
type Command struct {
	Path string   // the executable, as FindCommand returned it
	Args []string // Args[0] is the name by which the user called it
	Env  []string // "KEY=value"; nil means an empty environment
	// Withheld are descriptors that the command does not get. A standard file is then empty.
	Withheld []int
	// Admit, unless it is nil, is called after ready, with the command's process group. The
	// command begins when Admit returns nil. ended is closed if the process ends before. Systems
	// without process groups do not call Admit.
	Admit func(group int, ended <-chan struct{}) error
}

// Exit says how a command ended.
type Exit struct {
	Code   int // the exit code, -1 if a signal ended the command
	Signal int // the signal that ended it, 0 if none
}

// Status returns the exit code that a shell would show: 128+n after signal n.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + e.Signal
	}
	return e.Code
}
