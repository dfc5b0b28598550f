package watchdog

import (
	"bytes"
	"strconv"
	"time"
)

// maxLine bounds what is kept of a line that does not end.
const maxLine = 128

// core is what the watchdog knows. It is a step function: bytes and time in, a
// decision out.
type core struct {
	partial []byte
	wrapper int           // 0: not told
	group   int           // 0: not told yet
	until   time.Duration // 0: not told yet
	bye     bool
	ended   bool
}

// verdict is what the watchdog has to do.
type verdict int

const (
	wait verdict = iota // until the core's moment, or more input
	kill                // the group, then leave
	quit                // leave, there is nothing to guard
)

// read takes what came through the pipe, in pieces of any size.
func (c *core) read(b []byte) {
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

// line takes one message. What is malformed changes nothing: the last moment
// told stands.
func (c *core) line(line string) {
	if line == "bye" {
		c.bye = true
		return
	}
	word, number, _ := bytes.Cut([]byte(line), []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return
	}
	switch {
	case string(word) == "wrapper" && n > 1 && n < 1<<31:
		c.wrapper = int(n)
	case string(word) == "group" && n > 1 && n < 1<<31:
		c.group = int(n) // never 0, 1 or -1, which mean other processes
	case string(word) == "until" && n > 0:
		c.until = time.Duration(n)
	}
}

// decide says what to do at now.
func (c *core) decide(now time.Duration) verdict {
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
