//go:build unix

package locks

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// orphaned is how long stop waits for SIGCONT. The system does not stop a process of an
// orphaned process group, so no SIGCONT follows.
const orphaned = 200 * time.Millisecond

// stop stops the process group, as the terminal does for ^Z. It returns when the process
// continues.
func stop() {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	// The signal may stop another thread first. Without the wait, this thread could take
	// control of the terminal again before the process stops.
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-resumed:
	case <-time.After(orphaned):
	}
}

// Signals reports signals for a screen: resized when its size changed, resumed when the
// process continues after a stop. Call stop to unregister them.
func Signals() (resized, resumed <-chan os.Signal, stop func()) {
	r, c := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(r, syscall.SIGWINCH)
	signal.Notify(c, syscall.SIGCONT)
	return r, c, func() {
		signal.Stop(r)
		signal.Stop(c)
	}
}
