//go:build unix

package front

import (
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/cmd/zklock/internal/inherit"
)

// Link is the keeper's side. A nil Link is that of a process without a front.
type Link struct {
	sock  *os.File
	acked chan struct{}
	gone  chan struct{}
}

// ackTime bounds the wait for the front, which may be stopped.
const ackTime = 500 * time.Millisecond

// Attach takes the descriptor that the front has handed down. A goroutine
// waits for the front's end; it ends with the front or with this process.
func Attach(fd int) *Link {
	inherit.Mark(fd) // the command must not hold it
	// The keeper is never in the foreground and writes all the same.
	signal.Ignore(unix.SIGTTOU)
	l := &Link{sock: os.NewFile(uintptr(fd), "front"), acked: make(chan struct{}, 1), gone: make(chan struct{})}
	go l.read()
	return l
}

// read takes the front's one byte, then waits for its end.
func (l *Link) read() {
	defer close(l.gone)
	if n, _ := l.sock.Read(make([]byte, 1)); n == 1 { // an error is the end, seen below
		l.acked <- struct{}{}
	}
	_, _ = io.Copy(io.Discard, l.sock)
}

// Gone is closed when the front has died; never for a nil Link.
func (l *Link) Gone() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.gone
}

// Started tells the front of the command's process group, and waits until that
// has the terminal: the command is not to begin before. A front that is stopped
// does not answer in time; the command then begins in the background.
func (l *Link) Started(group int) {
	if l == nil {
		return
	}
	l.send(message{group: group})
	timer := time.NewTimer(ackTime)
	defer timer.Stop()
	select {
	case <-l.acked:
	case <-l.gone:
	case <-timer.C:
	}
}

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
