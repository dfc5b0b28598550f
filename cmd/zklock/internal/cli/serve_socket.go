//go:build unix

package cli

import (
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// ignoreBrokenPipes keeps a server alive whose output nobody reads any more:
// Go ends programs that write to such a one.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

// listenUnix listens at a path. What a server that was killed has left there is
// taken away: a socket that nobody answers at.
func listenUnix(path string) (net.Listener, error) {
	ln, err := net.Listen("unix", path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ln, err
	}
	if info, statErr := os.Lstat(path); statErr != nil || info.Mode().Type() != os.ModeSocket {
		return nil, err
	}
	conn, dialErr := net.Dial("unix", path)
	if dialErr == nil {
		_ = conn.Close() // only to see whether it is there
		return nil, err
	}
	if !errors.Is(dialErr, syscall.ECONNREFUSED) {
		return nil, err
	}
	if removeErr := os.Remove(path); removeErr != nil {
		return nil, errors.Join(err, removeErr)
	}
	return net.Listen("unix", path)
}
