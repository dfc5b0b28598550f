// Package front gives `zklock run` job control without giving up the lock.
//
// A shell takes the terminal back from a job when the process it started has
// stopped. The process that keeps the lock's session must never stop. So on a
// terminal there are two: the front, which the shell sees and which stops and
// goes on with the command, and the keeper, in a process group of its own,
// which holds the lock and runs the command. The keeper tells the front of the
// command through a socket; each knows the other's end by the socket's end.
package front

import (
	"fmt"
	"strconv"
	"strings"
)

// Argument is the hidden first argument of the keeper's process; a descriptor
// and the command line's own arguments follow.
const Argument = "__keep"

// message is what the keeper tells the front.
type message struct {
	group   int // the command's process group, once it runs
	stopped int // the signal that stopped the command
}

// encode writes a message as one line.
func (m message) encode() string {
	if m.group != 0 {
		return fmt.Sprintf("child %d\n", m.group)
	}
	return fmt.Sprintf("stopped %d\n", m.stopped)
}

// decode reads a line; false for what means nothing.
func decode(line string) (message, bool) {
	word, number, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < 1:
		return message{}, false
	case word == "child" && n > 1: // never 1, which would mean everybody
		return message{group: n}, true
	case word == "stopped":
		return message{stopped: n}, true
	}
	return message{}, false
}
