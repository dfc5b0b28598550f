//go:build !unix

package locks

import "os"

// stop does nothing, because this system has no job control.
func stop() {}

// Signals returns nil channels, because this system has no such signals.
func Signals() (resized, resumed <-chan os.Signal, stop func()) { return nil, nil, func() {} }
