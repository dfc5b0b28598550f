//go:build !unix

package cli

import "net"

// ignoreBrokenPipes has nothing to do: there is no signal for them.
func ignoreBrokenPipes() {}

// listenUnix listens at a path.
func listenUnix(path string) (net.Listener, error) { return net.Listen("unix", path) }
