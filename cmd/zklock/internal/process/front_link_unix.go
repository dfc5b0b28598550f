//go:build unix

package process

import (
	"io"
	"os"
	"os/signal"
	"sync/atomic"

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

// Admit sends the command's process group to the front, and waits until the front has given the
// terminal to the group, so that the command does not run before. While the front is stopped, it
// does not answer: the command of a job that was stopped begins when the job continues. A front
// that was told to end, or has ended, does not answer either. The caller then ends the process
// that waits to become the command, closes ended, and Admit returns ErrEnded.
func (l *Link) Admit(group int, ended <-chan struct{}) error {
	if l == nil {
		return nil
	}
	l.command.Store(int64(group))
	l.send(message{group: group})
	select {
	case <-l.acked:
		return nil
	case <-ended:
		return ErrEnded
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
