package process

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// maxLine limits the length of a line without an end.
const maxLine = 128

// maxVariables limits the number of variables.
const maxVariables = 8

// watchdogCore decides for the watchdog. It is a step function: its inputs are bytes and
// the time, and its output is a decision.
type watchdogCore struct {
	partial []byte
	wrapper int           // 0 if unknown
	env     []string      // variables of the command
	group   int           // 0 if unknown
	until   time.Duration // 0 if unknown
	bye     bool
	ended   bool // the input has ended
}

// decision is what the watchdog must do.
type decision int

const (
	wait decision = iota // until c.until, or for more input
	kill                 // kill the group, then exit
	quit                 // exit
)

// read processes input in pieces of any size.
func (c *watchdogCore) read(b []byte) {
	c.partial = append(c.partial, b...)
	for {
		line, rest, found := bytes.Cut(c.partial, []byte("\n"))
		if !found {
			break
		}
		c.line(string(line))
		c.partial = rest
	}
	if len(c.partial) > maxLine {
		c.partial = c.partial[:0]
	}
}

// line processes one message. It ignores an invalid one, so the last valid time stays.
func (c *watchdogCore) line(line string) {
	if line == "bye" {
		c.bye = true
		return
	}
	word, rest, _ := strings.Cut(line, " ")
	if word == "variable" && len(c.env) < maxVariables {
		c.env = append(c.env, rest)
		return
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return
	}
	switch {
	case word == "wrapper" && n > 0 && n < 1<<31:
		c.wrapper = int(n) // 1 in a container that runs only zklock
	case word == "group" && n > 1 && n < 1<<31:
		c.group = int(n) // 0 and 1 would mean other processes in kill(2)
	case word == "until" && n > 0:
		c.until = time.Duration(n)
	}
}

// decide returns what to do at now.
func (c *watchdogCore) decide(now time.Duration) decision {
	switch {
	case c.bye:
		return quit
	case c.group == 0 && c.ended:
		return quit
	case c.group != 0 && c.ended:
		return kill
	case c.group != 0 && c.until != 0 && now >= c.until:
		return kill
	}
	return wait
}
