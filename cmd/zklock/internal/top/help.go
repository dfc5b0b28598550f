package top

import (
	"strings"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/screen"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
)

const help = `  up down j k    select              enter right    the lock's queue
  pgup pgdn      by pages            esc left       back to the list
  home end g G   first, last         /              filter by lock or holder
  s              sort by the next    r              the other way round
  space          pause, go on        ^L             draw anew
  q ^C           quit                ^Z             to the shell; fg comes back

  HELD FOR   since the lock was seen to be given; with ≤ before it, it was held
             when this began, and the time in line may be a part of it
  QUEUE      how many wait, of which the one with the oldest entry WAITS so long
  !          sessions wait for each other there: see zklock doctor

  In a queue everybody waits for the link above. Readers that come in together
  are one link. Times are the servers'; what is shown is a second old at most.`

// helpLines is the page about the keys.
func (m *Model) helpLines() []screen.Line {
	text := help
	if m.ASCII {
		text = strings.ReplaceAll(text, "≤", "<")
	}
	var lines []screen.Line
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, screen.Plain(line, 0))
	}
	return lines
}

// short is a number of seconds for people.
func short(seconds float64) string {
	return span.Short(time.Duration(seconds * float64(time.Second)))
}
