//go:build unix

package watchdog

import (
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/cmd/zklock/internal/boot"
	"github.com/zklock/zklock/cmd/zklock/internal/inherit"
)

// Main is the watchdog's process. It returns when there is nothing more to
// guard, with the process's exit code.
//
// It polls in one thread: what was written before a stop of this very process
// must be read before its timer is believed.
func Main() int {
	inherit.Close()
	// Whoever ends the wrapper by name must not end what guards its command.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE)
	if err := unix.SetNonblock(0, true); err != nil {
		return 1
	}
	timer := newAlarm()
	var c core
	for {
		drain(&c)
		switch c.decide(boot.Now()) {
		case quit:
			return 0
		case kill:
			_ = unix.Kill(-c.group, unix.SIGKILL) // ESRCH: gone already
			return 0
		}
		timer.poll(c.until)
	}
}

// drain reads all that is there.
func drain(c *core) {
	var buf [512]byte
	for {
		n, err := unix.Read(0, buf[:])
		switch {
		case n > 0:
			c.read(buf[:n])
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return
		default: // the end, or an error that is as good as one
			c.ended = true
			return
		}
	}
}

// pollFor is poll(2) on the input and one more descriptor, for at most d.
func pollFor(extra int, d time.Duration) {
	fds := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
	if extra >= 0 {
		fds = append(fds, unix.PollFd{Fd: int32(extra), Events: unix.POLLIN})
	}
	ms := -1
	if d >= 0 {
		ms = int(min(d, time.Second).Milliseconds()) + 1
	}
	_, _ = unix.Poll(fds, ms) // an error means to look again, as a timeout does
}
