//go:build !unix

package process

import "errors"

// Link is always nil here.
type Link struct{}

// AttachFront returns nil, because these systems have no front.
func AttachFront(int) *Link { return nil }

// Gone returns nil.
func (l *Link) Gone() <-chan struct{} { return nil }

// Admit returns nil.
func (l *Link) Admit(int, <-chan struct{}) error { return nil }

// Stopped does nothing.
func (l *Link) Stopped(int) {}

// Foreground is always true.
func (l *Link) Foreground() bool { return true }

// HasTerminal is always false, because these systems have no job control.
func HasTerminal() bool { return false }

// EndByInterrupt does nothing.
func EndByInterrupt() {}

// RunFront is never called.
func RunFront(string, []string) (Exit, error) {
	return Exit{}, errors.New("no job control on this system")
}
