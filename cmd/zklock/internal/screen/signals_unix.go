//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// orphaned is how long a process that nobody could let go on waits for being
// stopped: such ones are not.
const orphaned = 200 * time.Millisecond

// stop stops the process group, as the terminal would by ^Z. It returns when somebody
// lets it go on.
func stop() {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	// Another thread may be the one that is stopped first: without the wait the
	// terminal could be taken over again before.
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-resumed:
	case <-time.After(orphaned):
	}
}

// Signals tells of what concerns a screen: resized when its size has changed, resumed
// when the process goes on after it was stopped. Stop ends it.
func Signals() (resized, resumed <-chan os.Signal, stop func()) {
	r, c := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(r, syscall.SIGWINCH)
	signal.Notify(c, syscall.SIGCONT)
	return r, c, func() {
		signal.Stop(r)
		signal.Stop(c)
	}
}
