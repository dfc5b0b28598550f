//go:build unix

package process

import (
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// WatchdogMain runs the watchdog process. It returns the exit code when there is nothing
// more to guard.
//
// It polls in one thread: if this process was stopped, it must read its input before it
// acts on the timer.
func WatchdogMain() int {
	CloseInherited()
	renameProcess()
	ReserveThreads(watchdogThreads)
	raisePriority()
	// Signals that end the wrapper must not end the watchdog.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE)
	if err := unix.SetNonblock(0, true); err != nil {
		return 1
	}
	timer := newAlarm()
	_, _ = unix.Write(1, []byte{'\n'}) // to Ready; the wrapper may have ended
	var c watchdogCore
	var w victims
	for {
		readInput(&c)
		w.update(&c)
		switch c.decide(BootTime()) {
		case quit:
			return 0
		case kill:
			w.kill(&c)
			return 0
		}
		timer.poll(c.until)
	}
}

// victims are the processes that the watchdog kills.
type victims struct {
	leader      Process       // of the group; zero if unknown
	descendants Descendants   // of the command, outside of its group
	until       time.Duration // at the last update
}

// update searches for descendants whenever the wrapper sends a new time. If the wrapper is
// killed, the command dies at once, and then its descendants cannot be found through it.
func (w *victims) update(c *watchdogCore) {
	if c.group == 0 || c.bye || c.until == w.until {
		return
	}
	if w.until == 0 {
		w.leader, _ = FindProcess(c.group)
		w.descendants.Command = w.leader
	}
	w.until = c.until
	w.find(c)
}

// find searches below the wrapper, which adopts the command's orphans, as long as it lives.
// It lives if it is still the parent of this process. Otherwise find searches below the
// command. It reports whether the search was complete.
func (w *victims) find(c *watchdogCore) (complete bool) {
	switch {
	case c.wrapper == unix.Getppid():
		return w.descendants.Find(c.wrapper, c.group)
	case !w.leader.Replaced():
		return w.descendants.Find(c.group, c.group)
	}
	return true
}

// quietSweeps is how many searches must find no process that runs, and no further one that
// has ended. maxSweep limits the time: a process of another user cannot be killed.
const (
	quietSweeps = 20
	maxSweep    = 10 * time.Second
)

// kill kills all victims. If the wrapper was stopped when its command ended, it did not
// send "bye", and another group may have the number of the group now.
//
// A stopped wrapper does not reap the processes that it adopts, so no search is complete.
//
// When the wrapper dies, the kernel closes its pipe first, and then gives its children another
// parent. The search continues until the children have that parent: a search below the wrapper
// could miss them.
func (w *victims) kill(c *watchdogCore) {
	quiet, ended := 0, 0
	for end := BootTime() + maxSweep; quiet < quietSweeps && BootTime() < end; {
		adopts, before := c.wrapper == unix.Getppid(), ended
		running, complete := 0, false
		if !adopts {
			complete = w.find(c) // through the parents, which must live
			running = w.descendants.Len()
		}
		if !w.leader.Replaced() {
			_ = unix.Kill(-c.group, unix.SIGKILL) // ESRCH: the group has ended
		}
		if adopts {
			running, ended, complete = w.descendants.KillNow(c.wrapper, c.group)
		} else {
			w.descendants.Kill()
			inherited, all := w.descendants.KillHeirs(c.env, c.group)
			running, complete = running+inherited, complete && all
		}
		dying := adopts && (c.ended || c.wrapper != unix.Getppid())
		if complete && running == 0 && !dying {
			return
		}
		quiet++
		if running > 0 || ended != before || dying || w.descendants.failed != nil {
			quiet = 0
		}
		time.Sleep(time.Millisecond)
	}
}

// readInput reads all available input.
func readInput(c *watchdogCore) {
	var buf [512]byte
	for {
		n, err := unix.Read(0, buf[:])
		switch {
		case n > 0:
			c.read(buf[:n])
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return
		default: // the end, or an error, which counts as the end
			c.ended = true
			return
		}
	}
}

// pollUntil waits for input or until a time, 0 for none, but for at most a second, because a
// suspend of the machine would prolong a longer wait.
func pollUntil(until time.Duration) {
	d := time.Second
	if until != 0 {
		d = max(until-BootTime(), 0)
	}
	pollFor(-1, d)
}

// pollFor calls poll(2) on the input and one more descriptor, for at most d.
func pollFor(extra int, d time.Duration) {
	fds := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
	if extra >= 0 {
		fds = append(fds, unix.PollFd{Fd: int32(extra), Events: unix.POLLIN})
	}
	ms := -1
	if d >= 0 {
		ms = int(min(d, time.Second).Milliseconds()) + 1
	}
	_, _ = unix.Poll(fds, ms) // the caller handles an error like a timeout
}
