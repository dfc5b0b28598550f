//go:build unix

package process

import (
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Link is the keeper's end of the socket. A process without a front has a nil Link.
type Link struct {
	sock  *os.File
	acked chan struct{}
	gone  chan struct{}
	// command is the command's process group, which keeps the terminal for a moment after
	// its end.
	command atomic.Int64
}

// ackTime limits the wait for the front, which may be stopped.
const ackTime = 500 * time.Millisecond

// AttachFront returns the Link of the descriptor that the front passed to this process. A
// goroutine waits for the end of the front, and ends with the front or this process.
func AttachFront(fd int) *Link {
	CloseOnExec(fd) // the command must not inherit it
	// The keeper writes to the terminal although it is never in the foreground.
	signal.Ignore(unix.SIGTTOU)
	l := &Link{sock: os.NewFile(uintptr(fd), "front"), acked: make(chan struct{}, 1), gone: make(chan struct{})}
	go l.read()
	return l
}

// read reads the acknowledgment of the front, then waits for its end.
func (l *Link) read() {
	defer close(l.gone)
	if n, _ := l.sock.Read(make([]byte, 1)); n == 1 { // the copy below detects the end
		l.acked <- struct{}{}
	}
	_, _ = io.Copy(io.Discard, l.sock)
}

// Gone returns a channel that is closed when the front has ended, or nil for a nil Link.
func (l *Link) Gone() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.gone
}

// Started sends the command's process group to the front, and waits until the group has
// the terminal, so that the command does not run before. If the front is stopped and does
// not answer in time, the command starts in the background.
func (l *Link) Started(group int) {
	if l == nil {
		return
	}
	l.command.Store(int64(group))
	l.send(message{group: group})
	timer := time.NewTimer(ackTime)
	defer timer.Stop()
	select {
	case <-l.acked:
	case <-l.gone:
	case <-timer.C:
	}
}

// Stopped sends the front the signal that stopped the command.
func (l *Link) Stopped(sig int) { l.send(message{stopped: sig}) }

// send sends one message. It never blocks, because its caller has a deadline, and a front that is
// stopped does not read. So it drops a message that does not fit: those that fit have already
// reported a stop. Gone reports a front that has ended.
func (l *Link) send(m message) {
	if l == nil {
		return
	}
	conn, err := l.sock.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Write(func(fd uintptr) (done bool) {
		for unix.Send(int(fd), []byte(m.encode()), unix.MSG_DONTWAIT) == unix.EINTR {
		}
		return true // also if the socket is full
	})
}

// Foreground reports whether the front's job has the terminal, so that the keeper may
// write to it.
func (l *Link) Foreground() bool {
	if l == nil {
		return true
	}
	have, err := unix.IoctlGetInt(2, unix.TIOCGPGRP)
	if err != nil {
		return true // there is no terminal
	}
	group, err := unix.Getpgid(unix.Getppid())
	return err == nil && (group == have || have == int(l.command.Load()))
}
