package process

import (
	"fmt"
	"strconv"
	"strings"
)

// front*.go give `zklock run` job control while it holds the lock.
//
// A shell takes the terminal back from a job when the process that it started stops. But
// the process that keeps the session of the lock must never stop. So on a terminal there
// are two processes. The front is the process that the shell started; it stops and
// continues together with the command. The keeper, in its own process group, holds the
// lock and runs the command. It reports about the command through a socket. Each of the
// two detects the end of the other by the end of the socket.

// KeeperArgument is the hidden first argument of the keeper. A descriptor and the
// arguments of the command line follow.
const KeeperArgument = "__keep"

// message is a message from the keeper to the front.
type message struct {
	group   int // the command's process group, once it runs
	stopped int // the signal that stopped the command
}

// encode returns the message as one line.
func (m message) encode() string {
	if m.group != 0 {
		return fmt.Sprintf("child %d\n", m.group)
	}
	return fmt.Sprintf("stopped %d\n", m.stopped)
}

// decode parses a line. It returns false for an invalid one.
func decode(line string) (message, bool) {
	word, number, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < 1:
		return message{}, false
	case word == "child" && n > 1: // a signal to -1 would go to all processes
		return message{group: n}, true
	case word == "stopped":
		return message{stopped: n}, true
	}
	return message{}, false
}
