//go:build !unix

package process

import "time"

// Watchdog does nothing here, because these systems have no process groups.
type Watchdog struct{ died chan struct{} }

// WatchdogMain is never called on these systems.
func WatchdogMain() int { return 1 }

// StartWatchdog returns a watchdog without a process.
func StartWatchdog(string) (*Watchdog, error) { return &Watchdog{died: make(chan struct{})}, nil }

// Ready returns a channel that is closed.
func (w *Watchdog) Ready() <-chan struct{} {
	ready := make(chan struct{})
	close(ready)
	return ready
}

// Died returns a channel that is never closed.
func (w *Watchdog) Died() <-chan struct{} { return w.died }

// Watch does nothing.
func (w *Watchdog) Watch(int, []string) error { return nil }

// Until does nothing.
func (w *Watchdog) Until(time.Duration) error { return nil }

// Kill does nothing.
func (w *Watchdog) Kill() {}

// Bye does nothing.
func (w *Watchdog) Bye() {}

// RunningProgram returns exe.
func RunningProgram(exe string) string { return exe }
