//go:build unix

package watchdog

import (
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/cmd/zklock/internal/boot"
	"github.com/zklock/zklock/cmd/zklock/internal/inherit"
	"github.com/zklock/zklock/cmd/zklock/internal/kin"
)

// Main is the watchdog's process. It returns when there is nothing more to
// guard, with the process's exit code.
//
// It polls in one thread: what was written before a stop of this very process
// must be read before its timer is believed.
func Main() int {
	inherit.Close()
	rename()
	hurry()
	// Whoever ends the wrapper by name must not end what guards its command.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE)
	if err := unix.SetNonblock(0, true); err != nil {
		return 1
	}
	timer := newAlarm()
	var c core
	var w watched
	for {
		drain(&c)
		w.look(&c)
		switch c.decide(boot.Now()) {
		case quit:
			return 0
		case kill:
			w.kill(&c)
			return 0
		}
		timer.poll(c.until)
	}
}

// watched is whom the watchdog ends.
type watched struct {
	leader kin.Process   // of the group; zero where it cannot be known
	kin    kin.Set       // what the command has started outside of its group
	until  time.Duration // as of the last look
}

// look sees who is there whenever there is news: of a wrapper that is killed
// the command dies at once, and nobody could be found by their parents any more.
func (w *watched) look(c *core) {
	if c.group == 0 || c.bye || c.until == w.until {
		return
	}
	if w.until == 0 {
		w.leader, _ = kin.Of(c.group)
		w.kin.Command = w.leader
	}
	w.until = c.until
	w.find(c)
}

// find looks below the wrapper, which adopts the command's orphans, as long as it
// lives: a process that is this one's parent still is the one that started it. If
// the wrapper has ended, find looks below the command.
func (w *watched) find(c *core) {
	switch {
	case c.wrapper == unix.Getppid():
		w.kin.Look(c.wrapper, c.group)
	case !w.leader.Replaced():
		w.kin.Look(c.group, c.group)
	}
}

// sweeps bounds how often the watchdog looks for what was started while it killed.
const sweeps = 10

// kill ends them all. A wrapper that was stopped when its command ended has not
// said good-bye: the group's number may be another's by now.
func (w *watched) kill(c *core) {
	for range sweeps {
		w.find(c)
		if !w.leader.Replaced() {
			_ = unix.Kill(-c.group, unix.SIGKILL) // ESRCH: gone already
		}
		if w.kin.Len() == 0 {
			return
		}
		w.kin.Kill()
		time.Sleep(time.Millisecond)
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
