//go:build unix

package front

import (
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/cmd/zklock/internal/inherit"
)

// Link is the keeper's side. A nil Link is that of a process without a front.
type Link struct {
	sock *os.File
	gone chan struct{}
}

// Attach takes the descriptor that the front has handed down. A goroutine
// waits for the front's end; it ends with the front or with this process.
func Attach(fd int) *Link {
	inherit.Mark(fd) // the command must not hold it
	// The keeper is never in the foreground and writes all the same.
	signal.Ignore(unix.SIGTTOU)
	l := &Link{sock: os.NewFile(uintptr(fd), "front"), gone: make(chan struct{})}
	go func() {
		_, _ = io.Copy(io.Discard, l.sock) // the front never writes; only its end matters
		close(l.gone)
	}()
	return l
}

// Gone is closed when the front has died; never for a nil Link.
func (l *Link) Gone() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.gone
}

// Started tells the front of the command's process group.
func (l *Link) Started(group int) { l.send(message{group: group}) }

// Stopped tells the front of the signal that stopped the command.
func (l *Link) Stopped(sig int) { l.send(message{stopped: sig}) }

// send writes one message; a front that is gone shows in Gone.
func (l *Link) send(m message) {
	if l != nil {
		_, _ = io.WriteString(l.sock, m.encode())
	}
}

// Foreground reports whether the front's job has the terminal, which is when
// its user wants to read what the keeper writes.
func (l *Link) Foreground() bool {
	if l == nil {
		return true
	}
	have, err := unix.IoctlGetInt(2, unix.TIOCGPGRP)
	if err != nil {
		return true // no terminal to disturb
	}
	group, err := unix.Getpgid(unix.Getppid())
	return err == nil && group == have
}
