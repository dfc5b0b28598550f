package cli

import (
	"syscall"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/deadline"
)

// Times of what is done about a command's remains.
const (
	remainsFirst = time.Millisecond // pause before the second look; each later one is twice as long
	remainsMost  = 20 * time.Millisecond
	remainsTell  = time.Second // from KILL until the user is told that it does not help
)

// remains are the processes that a command has started and that did not end with
// it. If the command was ended, the supervisor ends them too, before the lock is
// released: the next holder must not start while they write. If the command ended
// by itself, what it left in the background may go on.
type remains struct {
	killAt time.Duration // when they get KILL
	pause  time.Duration // before the next look
	told   bool          // the user knows that some cannot be killed
}

// wasEnded reports whether a command was ended by a signal, also by its own word:
// a shell, and a program that catches signals, exits with 128+n.
func wasEnded(exit child.Exit) bool {
	n := exit.Status() - 128
	return exit.Signal != 0 || n == killSignal || n > 0 && ends(syscall.Signal(n))
}

// left begins with the remains of a command that was ended. Those that got a signal
// with the command do not get another one but CONT, since many programs take a
// second signal as an order to hurry.
func (s *supervisor) left(core *deadline.Core, exit child.Exit) {
	s.remains = &remains{killAt: s.now() + s.plan.KillAfter, pause: remainsFirst}
	switch {
	case core.Killing() || exit.Signal == killSignal && s.passed(): // by this process or the watchdog
		s.remains.killAt = s.now()
	case !s.cmd.Left():
	case s.stopping || core.Ending():
		s.cmd.TerminateLeft()
	default:
		s.cmd.Terminate()
	}
}

// clear kills the remains once it is time, and reports whether none is left, and
// when to look again. It gives up only once the lock is lost and its time is
// over, when there is nothing more to wait for.
func (s *supervisor) clear(core *deadline.Core) (cleared bool, next time.Duration) {
	if s.remains == nil {
		return false, forever
	}
	now := s.now()
	if !s.cmd.Left() || s.hold.Err() != nil && now >= core.Deadline() {
		return true, now
	}
	r := s.remains
	if core.Killing() {
		r.killAt = min(r.killAt, now)
	}
	if now >= r.killAt {
		s.cmd.Kill() // again and again: they may start others
	}
	if now >= r.killAt+remainsTell && !r.told && s.hold.Err() == nil {
		r.told = true
		warn("processes of the command still run and cannot be killed, as those of another user: keeping the lock until they end%s", s.on)
	}
	next = now + r.pause
	r.pause = min(2*r.pause, remainsMost)
	if now < r.killAt {
		next = min(next, r.killAt)
	}
	return false, next
}
