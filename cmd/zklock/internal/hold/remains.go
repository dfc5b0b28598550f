package hold

import (
	"syscall"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// Times for ending a command's remaining processes.
const (
	remainsFirst = time.Millisecond // delay before the second check; each later delay is twice as long
	remainsMost  = 20 * time.Millisecond
	remainsWarn  = time.Second // from KILL until a message says that processes still run
	// signalGrace is how long a signal of a shutdown can reach this process after the
	// command has ended because of it.
	signalGrace = 50 * time.Millisecond
)

// remains are the processes that a command has started and that still run after it. If a
// signal ended the command, the supervisor ends them too, before the lock is released: the
// next holder must not start while they write. If the command exited by itself, they may
// continue.
type remains struct {
	killAt time.Duration // when they get KILL
	lateAt time.Duration // when they had time to end after their first KILL; forever before it
	delay  time.Duration // before the next check
	warned bool          // the message was printed
}

// wasEnded reports whether a signal ended a command, or its exit code says so: a shell,
// and a program that catches signals, exits with 128+n.
func wasEnded(exit process.Exit) bool {
	n := exit.Status() - 128
	return exit.Signal != 0 || n == killSignal || n > 0 && cli.IsTermination(syscall.Signal(n))
}

// isStopping reports whether this process got a signal that ends programs. A shutdown
// signals all processes, and the command may catch the signal and exit before it reaches
// this process. If processes of the command are left, or its success would be recorded,
// isStopping waits for the signal.
func (s *supervisor) isStopping(exit process.Exit) bool {
	var grace time.Duration
	if s.cmd.Left() || s.records && exit.Status() == 0 {
		grace = signalGrace
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	over := grace == 0
	for !s.stopping {
		select {
		case sig := <-s.signals:
			s.forward(sig)
		default: // no signal is pending
			if over {
				return false
			}
			select {
			case sig := <-s.signals:
				s.forward(sig)
			case <-timer.C:
				over = true
			}
		}
	}
	return true
}

// endRemains begins to end the remains of a command that a signal ended. Processes that
// got that signal get only CONT, because many programs exit faster, and less cleanly, on
// a second signal.
func (s *supervisor) endRemains(core *Core, exit process.Exit) {
	s.remains = &remains{killAt: s.killDue(core), lateAt: forever, delay: remainsFirst}
	switch {
	case core.Killing() || s.maxHold.phase == Kill || exit.Signal == killSignal && s.watchdogDue(): // this process or the watchdog killed it
		s.remains.killAt = s.now()
	case !s.cmd.Left():
	case s.stopping || core.Ending():
		s.cmd.TerminateLeft(s.remains.killAt)
	default:
		s.cmd.Terminate(s.remains.killAt)
	}
}

// checkRemains kills the remains when that is due. It reports whether none are left, and
// when to check again. After the loss of the lock, it gives up at the deadline, because
// then the release no longer depends on them, but not before KILL had time to end them.
func (s *supervisor) checkRemains(core *Core) (gone bool, next time.Duration) {
	if s.remains == nil {
		return false, forever
	}
	now := s.now()
	if !s.cmd.Left() {
		return true, now
	}
	r := s.remains
	if core.Killing() {
		r.killAt = min(r.killAt, now)
	}
	late, lost := now >= r.lateAt, s.hold.Err() != nil
	if late && lost && now >= core.Deadline() {
		if err := s.cmd.ListError(); err != nil {
			cli.Warn("the lock is lost, but processes of the command may still run, because they cannot be listed%s: %v", s.servers, err)
		} else {
			cli.Warn("the lock is lost, but processes of the command still run after KILL (they may belong to another user)%s", s.servers)
		}
		return true, now
	}
	if now >= r.killAt {
		s.cmd.Kill() // repeated, because they may start others
		r.lateAt = min(r.lateAt, now+remainsWarn)
	}
	if late && !lost && !r.warned {
		r.warned = true
		if err := s.cmd.ListError(); err != nil {
			cli.Warn("cannot list the processes of the command: keeping the lock until that is possible and they have ended%s: %v", s.servers, err)
		} else {
			cli.Warn("processes of the command still run after KILL (they may belong to another user): keeping the lock until they end%s", s.servers)
		}
	}
	next = now + r.delay
	r.delay = min(2*r.delay, remainsMost)
	if now < r.killAt {
		next = min(next, r.killAt)
	}
	return false, next
}
