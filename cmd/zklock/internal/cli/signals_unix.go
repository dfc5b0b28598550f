//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// ignoreBrokenPipes keeps a server running when the reader of its output ends. By default, a
// Go program that writes to a broken standard output or standard error ends.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }
