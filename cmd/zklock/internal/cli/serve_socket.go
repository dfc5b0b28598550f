//go:build unix

package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// ignoreBrokenPipes keeps a server alive whose output nobody reads any more:
// Go ends programs that write to such a one.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

// listenUnix listens at a path, where no other users than those of the group may
// connect. What a server that was killed has left there is taken away: a socket that
// nobody answers at.
func listenUnix(path string) (net.Listener, error) {
	ln, err := bindUnix(path)
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
	return bindUnix(path)
}

// socketMode is the mode of a unix socket, less what the umask takes away. Connecting
// needs the right to write.
const socketMode = 0o660

// bindUnix listens at a path that is free. On Linux the socket has its mode from the
// start; elsewhere it gets it in the next moment.
func bindUnix(path string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// Linux takes the mode of a file that it makes from the socket. Others refuse.
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), socketMode) })
	}}
	ln, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Perm()&^socketMode != 0 {
		err = os.Chmod(path, info.Mode().Perm()&socketMode)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}
