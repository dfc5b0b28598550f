//go:build !unix

package watchdog

import "time"

// Guard does nothing here: there are no process groups to guard.
type Guard struct{ died chan struct{} }

// Main is never reached by Start on these systems.
func Main() int { return 1 }

// Start returns a guard without a process.
func Start(string) (*Guard, error) { return &Guard{died: make(chan struct{})}, nil }

// Died is never closed.
func (g *Guard) Died() <-chan struct{} { return g.died }

// Watch does nothing.
func (g *Guard) Watch(int) error { return nil }

// Until does nothing.
func (g *Guard) Until(time.Duration) error { return nil }

// Kill does nothing.
func (g *Guard) Kill() {}

// Bye does nothing.
func (g *Guard) Bye() {}
