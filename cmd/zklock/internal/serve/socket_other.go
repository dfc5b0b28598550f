//go:build !unix

package serve

import "net"

// listenUnix listens at a path.
func listenUnix(path string) (net.Listener, error) { return net.Listen("unix", path) }
