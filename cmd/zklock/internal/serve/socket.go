//go:build unix

package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/zklock/zklock/internal/ownership"
)

// listenUnix listens at a path. Only this user and the members of the group may connect. It
// removes a socket that does not answer, because its server was killed. It does not follow
// a link of another user, who could otherwise choose which files it removes and changes.
func listenUnix(path string) (net.Listener, error) {
	dir, err := ownership.OpenDir(ownership.Parent(path))
	if err != nil {
		return nil, err
	}
	ln, err := listenIn(dir, path)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return ln, nil
}

// listenIn is listenUnix in the open directory of the path. The listener closes dir.
func listenIn(dir *os.Root, path string) (net.Listener, error) {
	ln, err := bindUnix(dir, path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ln, err
	}
	name := filepath.Base(path)
	if info, statErr := dir.Lstat(name); statErr != nil || info.Mode().Type() != os.ModeSocket {
		return nil, err
	}
	conn, dialErr := net.Dial("unix", path)
	if dialErr == nil {
		_ = conn.Close() // it only checked whether a server answers
		return nil, err
	}
	if !errors.Is(dialErr, syscall.ECONNREFUSED) {
		return nil, err
	}
	if removeErr := dir.Remove(name); removeErr != nil {
		return nil, errors.Join(err, removeErr)
	}
	return bindUnix(dir, path)
}

// socketMode is the mode of a unix socket before the umask. Connecting needs write
// permission.
const socketMode = 0o660

// bindUnix listens at a free path in dir. On Linux the socket has its mode from the start;
// on other systems it gets the mode right after.
func bindUnix(dir *os.Root, path string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// Linux gives the file the mode of the socket. Other systems return an error.
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), socketMode) })
	}}
	ln, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	unix := ln.(*net.UnixListener)
	unix.SetUnlinkOnClose(false) // ownSocket does that
	name := filepath.Base(path)
	info, err := dir.Lstat(name)
	if err == nil && info.Mode().Type() != os.ModeSocket {
		err = fmt.Errorf("%s was replaced by another user", path)
	}
	if err == nil && info.Mode().Perm()&^socketMode != 0 {
		err = dir.Chmod(name, info.Mode().Perm()&socketMode)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return &ownSocket{unix, dir, info}, nil
}

// ownSocket is a listener that removes its socket from the directory in which it was made.
// Its path can lead to another directory by then, and to a file of the same name there.
type ownSocket struct {
	*net.UnixListener
	dir  *os.Root
	info os.FileInfo
}

// Close implements net.Listener.
func (s *ownSocket) Close() error {
	var failed error
	if there, err := s.dir.Lstat(s.info.Name()); err == nil && os.SameFile(there, s.info) {
		failed = s.dir.Remove(s.info.Name())
	}
	return errors.Join(failed, s.UnixListener.Close(), s.dir.Close())
}
