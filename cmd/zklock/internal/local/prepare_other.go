//go:build !unix

package local

import (
	"fmt"
	"os"
)

// Mine is the Who of this process.
func Mine() Who { return Who{Getenv: os.Getenv, UID: -1} }

// Prepare returns an error: this system has no local server.
func Prepare(string) error {
	return fmt.Errorf("%w: this system has none; %s", ErrNone, Advice)
}
