//go:build !unix

package screen

import "os"

// stop does nothing where processes can't be stopped.
func stop() {}

// Signals tells of nothing where there are no such signals.
func Signals() (resized, resumed <-chan os.Signal, stop func()) { return nil, nil, func() {} }
