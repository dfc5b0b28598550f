package cli

import (
	"errors"
	"os"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/boot"
	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/deadline"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/cmd/zklock/internal/watchdog"
)

// holding is what the supervisor asks a hold.
type holding interface {
	Remaining() time.Duration
	Err() error
	Done() <-chan struct{}
}

// process is what the supervisor does with a command.
type process interface {
	Exited() <-chan child.Exit
	Stopped() <-chan int
	Signal(os.Signal)
	Terminate()
	TerminateLeft()
	Kill()
	Left() bool
	Group() int
}

// guarding is what the supervisor tells a watchdog.
type guarding interface {
	Died() <-chan struct{}
	Watch(group int) error
	Until(time.Duration) error
	Bye()
	Kill()
}

// supervisor follows a command until it has ended. It belongs to one goroutine.
type supervisor struct {
	hold     holding
	cmd      process
	plan     deadline.Plan
	signals  <-chan os.Signal
	link     *front.Link
	guard    guarding
	again    respawn
	revoked  <-chan struct{} // somebody asks for the lock back; nil if nobody can
	asked    func() bool     // what to do about it; reports whether the command was told to end
	now      func() time.Duration
	told     time.Duration       // the moment that the watchdog knows
	late     bool                // that moment came before this process did anything about it
	news     <-chan zklock.Event // of servers that do not answer, or do again; may be nil
	on       string              // which servers these are, for what is said of them
	stopping bool                // the command was sent a signal that ends programs, not for the lock's sake
	remains  *remains            // of the command; nil unless it was ended
}

// look takes one look at the hold.
func (s *supervisor) look() deadline.Hold {
	// Err first: a hold that ends in between is then lost at the next look,
	// and has nothing remaining at this one.
	return deadline.Hold{Lost: s.hold.Err() != nil, Remaining: s.hold.Remaining()}
}

// run returns how the command ended, and whether it was ended for the lock's
// sake.
func (s *supervisor) run() (child.Exit, bool) {
	core := s.plan.Begin(s.now(), s.look())
	done := s.hold.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var exit child.Exit
	ended := false
	for {
		next := min(s.step(core), s.respawned())
		cleared, again := s.clear(core)
		if cleared {
			return exit, ended
		}
		timer.Reset(max(min(next, again)-s.now(), 0))
		select {
		case exit = <-s.cmd.Exited(): // once
			ended = core.Ending() || exit.Signal == killSignal && s.passed()
			if !ended && !s.stopping && !wasEnded(exit) {
				return exit, false
			}
			s.left(core, exit)
		case sig := <-s.signals:
			s.stopping = s.stopping || ends(sig)
			s.cmd.Signal(sig)
		case sig := <-s.cmd.Stopped():
			s.link.Stopped(sig)
		case <-done:
			done = nil
		case <-s.revoked:
			s.revoked = nil
			s.stopping = s.asked() || s.stopping
		case <-s.link.Gone():
			s.link = nil
			warn("the process that the shell started is gone: killing the command")
			s.cmd.Kill()
		case <-s.guard.Died():
			s.bereft()
		case e := <-s.news:
			// Once the command was told to end, why was said with that, and who reads
			// on would think that it need not have been. Library and plan go by clocks
			// of their own: where answers are late, that comes first.
			if !core.Ending() {
				jeopardy(e, s.on)
			}
		case <-timer.C:
		}
	}
}

// passed reports whether the moment that the watchdog knows has come.
func (s *supervisor) passed() bool { return s.late || s.now() >= s.told }

// killSignal is how a watchdog ends a command: one that ended so when its time was
// up was ended by that, though this process may find the lock still held when it
// runs again.
const killSignal = 9

// step does what the core wants now and returns when to look again.
func (s *supervisor) step(core *deadline.Core) time.Duration {
	s.late = s.late || s.told != 0 && s.now() >= s.told
	told := core.Ending()
	action, next := core.Step(s.now(), s.look())
	switch action {
	case deadline.Term:
		warn("the lock %s: ending the command", s.danger())
		s.cmd.Terminate()
	case deadline.Kill:
		if !told {
			warn("the lock %s: killing the command", s.danger())
		}
		s.cmd.Kill()
	}
	// The watchdog comes after our own KILL and before the deadline.
	if until := core.Deadline() - s.plan.Margin/2; until != s.told {
		s.told = until
		if err := s.guard.Until(until); err != nil {
			s.guard.Kill() // it is stopped, or gone; Died tells
		}
	}
	return next
}

// danger says why the command has to end.
func (s *supervisor) danger() string {
	if err := s.hold.Err(); err != nil {
		return "is lost (" + err.Error() + ")"
	}
	return "is about to be lost (no answer from the servers)"
}

// bereft notes that the watchdog has died.
func (s *supervisor) bereft() {
	s.guard.Bye() // closes the pipe
	s.guard = noGuard{}
	s.again.died(s.now())
}

// respawned starts another watchdog for one that was killed, once it is due, and
// returns when to come back. Without one the command still has the parent-death
// signal.
func (s *supervisor) respawned() time.Duration {
	if _, none := s.guard.(noGuard); !none {
		return forever
	}
	now := s.now()
	if now < s.again.at {
		return s.again.at
	}
	s.again.tried(now)
	guard, err := s.again.start()
	if err == nil {
		if err = errors.Join(guard.Until(s.told), guard.Watch(s.cmd.Group())); err != nil {
			guard.Kill()
			guard.Bye()
		}
	}
	if err != nil {
		if !s.again.warned {
			warn("%v; going on without", err)
		}
		s.again.warned = true
		s.again.died(s.now())
		return s.again.at
	}
	s.guard = guard
	return forever
}

// noGuard stands where no watchdog can be had.
type noGuard struct{}

func (noGuard) Died() <-chan struct{}     { return nil }
func (noGuard) Watch(int) error           { return nil }
func (noGuard) Until(time.Duration) error { return nil }
func (noGuard) Bye()                      {}
func (noGuard) Kill()                     {}

// newSupervisor starts the command under the hold, with a watchdog.
func newSupervisor(hold holding, plan deadline.Plan, cmd child.Command, exe string, link *front.Link) (*supervisor, error) {
	guard, err := watchdog.Start(exe)
	if err != nil {
		return nil, err
	}
	s := &supervisor{hold: hold, plan: plan, guard: guard, link: link, now: boot.Now}
	started, err := child.Start(cmd, exe, func(group int) error {
		// From here on the watchdog knows what to do if this process does not
		// run on.
		s.told = s.now() + hold.Remaining() - plan.Margin/2
		if err := errors.Join(guard.Until(s.told), guard.Watch(group)); err != nil {
			return err
		}
		link.Started(group)
		return hold.Err() // the last look before the command runs
	})
	if err != nil {
		guard.Bye()
		return nil, err
	}
	s.cmd = started
	s.again.start = func() (guarding, error) { return watchdog.Start(exe) }
	s.again.tried(s.now())
	return s, nil
}
