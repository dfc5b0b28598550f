//go:build unix

package serve

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstFD is the first passed descriptor in the protocol.
const firstFD = 3

// maxSockets limits the number in the environment.
const maxSockets = 64

// Sockets returns the sockets that a service manager passed to this process, none if
// LISTEN_PID is another process. It removes the variables from the environment, so that
// children do not use them. Call it at most once, before any other file is opened.
func Sockets() ([]Socket, error) {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		// It cannot fail, because the name has no = and no zero byte.
		_ = os.Unsetenv(name)
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxSockets {
		return nil, fmt.Errorf("socket activation: LISTEN_FDS is %.20q: want a number up to %d", count, maxSockets)
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

// nameOf returns name i of the list.
func nameOf(names string, i int) string {
	if list := strings.Split(names, ":"); names != "" && i < len(list) && list[i] != "" {
		return list[i]
	}
	return "unknown"
}

// take returns a listener for a descriptor, and sets close-on-exec.
func take(fd int, name string) (Socket, error) {
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), name)
	if f == nil {
		return Socket{}, fmt.Errorf("socket activation: descriptor %d of %.50q is not open", fd, name)
	}
	defer f.Close() // the listener has a copy
	ln, err := net.FileListener(f)
	if err != nil {
		return Socket{}, fmt.Errorf("socket activation: descriptor %d of %.50q is not a listening stream socket: %w", fd, name, err)
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the service manager owns the file
	}
	return Socket{Name: name, Listener: ln}, nil
}
