//go:build !unix

package front

import "errors"

// Link is the keeper's side. A nil Link is that of a process without a front.
type Link struct{}

// Attach returns nil: there is no front here.
func Attach(int) *Link { return nil }

// Gone is never closed.
func (l *Link) Gone() <-chan struct{} { return nil }

// Started does nothing.
func (l *Link) Started(int) {}

// Stopped does nothing.
func (l *Link) Stopped(int) {}

// Foreground is always true.
func (l *Link) Foreground() bool { return true }

// Wanted is always false: there is no job control.
func Wanted() bool { return false }

// Run is never called.
func Run(string, []string) (int, error) { return 0, errors.New("no job control on this system") }
