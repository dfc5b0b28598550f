//go:build !unix

package local

import (
	"errors"
	"os"
)

// Mine is the Who of this process.
func Mine() Who { return Who{Getenv: os.Getenv, UID: -1} }

// Prepare returns an error: this system has no local server.
func Prepare(string) error {
	return &DirError{Reason: errors.New("this system has none")}
}
