//go:build unix

package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstFD is where the descriptors begin, by the protocol.
const firstFD = 3

// maxSockets bounds what the environment may claim.
const maxSockets = 64

// ErrSockets is wrapped by errors about sockets that were handed over.
var ErrSockets = errors.New("socket activation")

// Sockets takes the sockets over that this process was started with, none if
// LISTEN_PID is not this process. It takes the variables out of the
// environment, so that no child believes they are for it. It must be called
// before any other file is opened, at most once.
func Sockets() ([]Socket, error) {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		// A name without = and zero cannot fail.
		_ = os.Unsetenv(name)
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxSockets {
		return nil, fmt.Errorf("%w: LISTEN_FDS is %.20q: want a number up to %d", ErrSockets, count, maxSockets)
	}
	sockets := make([]Socket, 0, n)
	for i := range n {
		s, err := take(firstFD+i, nameOf(names, i))
		if err != nil {
			for _, s := range sockets {
				_ = s.Close()
			}
			return nil, err
		}
		sockets = append(sockets, s)
	}
	return sockets, nil
}

// nameOf is name i of the list.
func nameOf(names string, i int) string {
	if list := strings.Split(names, ":"); names != "" && i < len(list) && list[i] != "" {
		return list[i]
	}
	return "unknown"
}

// take makes a listener of a descriptor, which is closed to children.
func take(fd int, name string) (Socket, error) {
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), name)
	if f == nil {
		return Socket{}, fmt.Errorf("%w: descriptor %d of %.50q is not open", ErrSockets, fd, name)
	}
	defer f.Close() // the listener has a copy
	ln, err := net.FileListener(f)
	if err != nil {
		return Socket{}, fmt.Errorf("%w: descriptor %d of %.50q is no listening socket of a stream: %w", ErrSockets, fd, name, err)
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // it is whose who made it
	}
	return Socket{Name: name, Listener: ln}, nil
}
