//go:build !unix

package home

import (
	"fmt"
	"os"
)

// Mine is the Who of this process.
func Mine() Who { return Who{Getenv: os.Getenv, UID: -1} }

// Prepare refuses: there is no local server on this system.
func Prepare(string) error {
	return fmt.Errorf("%w: this system has none; %s", ErrNone, Advice)
}

// Private refuses as Prepare does.
func Private(dir string) error { return Prepare(dir) }
