package locks

import (
	"strings"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

const help = `  up down j k    select              enter right    the lock's queue
  pgup pgdn      by pages            esc left       back to the list
  home end g G   first, last         /              filter by lock or holder
  s              next sort order     r              reverse the order
  space          pause, continue     ^L             redraw the screen
  q ^C           quit                ^Z             suspend; fg continues

  HELD FOR   time since the grant; with ≤, the lock was already held when top
             started, and the time can include the wait
  QUEUE      number of waiters
  WAITS      age of the oldest waiter's entry
  !          sessions wait for each other here: see zklock doctor

  In a queue, each link waits for the link above. Readers that hold the lock
  together are one link. Times are server times. The data is at most 1 s old.`

// helpLines returns the help page of the keys.
func (m *Model) helpLines() []Line {
	text := help
	if m.ASCII {
		text = strings.ReplaceAll(text, "≤", "<")
	}
	var lines []Line
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, Plain(line, 0))
	}
	return lines
}

// short formats a number of seconds.
func short(seconds float64) string {
	return cli.ShortDuration(time.Duration(seconds * float64(time.Second)))
}
