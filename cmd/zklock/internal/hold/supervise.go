package hold

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// holding has the methods of a hold that the supervisor calls.
type holding interface {
	Remaining() time.Duration
	Err() error
	Done() <-chan struct{}
}

// runningCommand has the methods of a command that the supervisor calls.
type runningCommand interface {
	Exited() <-chan process.Exit
	Stopped() <-chan int
	Signal(os.Signal)
	Terminate(until time.Duration)
	TerminateLeft(until time.Duration)
	Kill()
	Left() bool
	ListError() error
	Group() int
}

// watchdog has the methods of a watchdog that the supervisor calls.
type watchdog interface {
	Died() <-chan struct{}
	Watch(group int, env []string) error
	Until(time.Duration) error
	Bye()
	Kill()
}

// lossHook has the method of the hook of --on-lost that the supervisor calls.
type lossHook interface{ Start(reason string) error }

// supervisor follows a command until it has ended. Its methods belong to one goroutine.
type supervisor struct {
	hold          holding
	cmd           runningCommand
	env           []string // of the command
	plan          Plan
	timeout       func() time.Duration // returns the session timeout that the servers granted
	signals       <-chan os.Signal
	link          *process.Link
	watchdog      watchdog
	respawn       respawn                      // starts another watchdog
	revoked       <-chan zklock.ReleaseRequest // gets a release request; may be nil
	onRevoke      onRevoke
	title         string // names the locks in messages
	wasRevoked    bool   // a client requested the release
	now           func() time.Duration
	watchdogUntil time.Duration       // when the watchdog kills the command, as it knows
	overdue       bool                // that time came before this process acted
	events        <-chan zklock.Event // jeopardy begins or ends; may be nil
	servers       string              // suffix of messages that names the servers
	stopping      bool                // the command got a signal that ends programs, for another reason than its lock
	records       bool                // a run that succeeds is recorded
	remains       *remains            // of the command; nil unless it was ended
	hook          lossHook            // of --on-lost; may be nil
	maxHold       maxHold
	begins        <-chan error  // gets nil when the command begins, or why it cannot; then nil
	onBegin       func()        // called when the command begins; may be nil
	beginBy       time.Duration // when a command that has not begun gets KILL; 0 if it may begin
	notBegun      error         // why the command could not begin
}

// readHold returns the current state of a hold.
func readHold(h holding) Hold {
	// Err comes first: a hold that ends between the two calls then has no time
	// remaining, and the next call reports the loss.
	return Hold{Lost: h.Err() != nil, Remaining: h.Remaining()}
}

// run follows the command until it has ended. It returns how it ended, and reports
// whether the supervisor ended it because of its lock.
func (s *supervisor) run() (process.Exit, bool) {
	core := s.plan.Begin(s.now(), readHold(s.hold))
	done := s.hold.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var exit process.Exit
	ended := false
	for {
		next := min(s.step(core), s.limitHold(core), s.restartWatchdog(), s.limitBegin())
		gone, again := s.checkRemains(core)
		if gone {
			return exit, ended
		}
		timer.Reset(max(min(next, again)-s.now(), 0))
		select {
		case err := <-s.begins:
			s.began(err)
		case exit = <-s.cmd.Exited(): // once
			if s.begins != nil {
				s.began(<-s.begins) // the process has ended, so its exec has too
			}
			if s.notBegun != nil {
				return exit, false
			}
			ended = core.Ending() || exit.Signal == killSignal && s.watchdogDue()
			if !ended && !wasEnded(exit) && !s.isStopping(exit) {
				return exit, false
			}
			s.endRemains(core, exit)
		case sig := <-s.signals:
			s.forward(sig)
		case sig := <-s.cmd.Stopped():
			s.link.Stopped(sig)
		case <-done:
			done = nil
		case r := <-s.revoked:
			s.releaseRequested(core, r)
		case <-s.link.Gone():
			s.link = nil
			s.cmd.Kill()
			cli.Warn("the zklock process that the shell started was killed: killing the command")
		case <-s.watchdog.Died():
			s.watchdogDied()
		case e := <-s.events:
			// After TERM, "the lock is still held" would suggest that TERM was not
			// needed. The library and the supervisor schedule independently, so the
			// event can arrive after TERM.
			if !core.Ending() {
				warnJeopardy(e, s.hold.Remaining()-s.plan.Margin-s.plan.KillAfter, s.servers)
			}
		case <-timer.C:
		}
	}
}

// began records the end of the exec of the command. If a signal ended the process before, the exit
// follows.
func (s *supervisor) began(err error) {
	s.begins = nil
	switch {
	case err == nil && s.onBegin != nil:
		s.onBegin()
	case !errors.Is(err, process.ErrEnded):
		s.notBegun = err
	}
}

// limitBegin kills a command that was told to end and has not begun after --kill-after, and returns
// when to check again. Until the exec ends, which can take long if a file system hangs, the process
// may not react to other signals.
func (s *supervisor) limitBegin() time.Duration {
	if s.begins == nil || !s.stopping {
		return forever
	}
	now := s.now()
	if s.beginBy == 0 {
		s.beginBy = now + s.plan.KillAfter
	}
	if now < s.beginBy {
		return s.beginBy
	}
	s.cmd.Kill()
	return now + s.plan.Interval
}

// forward sends a signal that this process got to the command.
func (s *supervisor) forward(sig os.Signal) {
	s.stopping = s.stopping || cli.IsTermination(sig)
	s.cmd.Signal(sig)
}

// watchdogDue reports whether the time at which the watchdog kills the command has come.
func (s *supervisor) watchdogDue() bool { return s.overdue || s.now() >= s.watchdogUntil }

// killSignal is the signal with which the watchdog ends a command. If it ended a command
// after the watchdog's time, the watchdog sent it, even if this process still finds the
// lock held when it runs again.
const killSignal = 9

// releaseRequested handles a release request.
func (s *supervisor) releaseRequested(core *Core, r zklock.ReleaseRequest) {
	s.wasRevoked = true
	if s.onRevoke.term {
		s.stopping = true
		s.cmd.Terminate(s.killDue(core))
	}
	s.onRevoke.warn(s.title, r, "ending the command", "the command continues")
}

// killDue returns when KILL follows a TERM that is sent now. The KILL of an earlier TERM is
// due sooner.
func (s *supervisor) killDue(core *Core) time.Duration {
	due := s.now() + s.plan.KillAfter
	if core.Ending() {
		due = min(due, core.killAt)
	}
	if s.maxHold.phase != Wait {
		due = min(due, s.maxHold.killAt)
	}
	if s.remains != nil {
		due = min(due, s.remains.killAt)
	}
	return due
}

// step does what the core decides now and returns when to check again.
func (s *supervisor) step(core *Core) time.Duration {
	s.overdue = s.overdue || s.watchdogUntil != 0 && s.now() >= s.watchdogUntil
	now, hold := s.now(), readHold(s.hold)
	// The timeout is read last: the remaining time of a shorter one needs the plan of that one.
	s.plan = s.plan.within(s.timeout())
	core.plan = s.plan
	warned := core.Ending()
	action, next := core.Step(now, hold)
	switch action {
	case Term:
		s.cmd.Terminate(core.killAt)
		s.runHook()
		cli.Warn("the lock %s: ending the command", s.danger())
	case Kill:
		s.cmd.Kill()
		s.runHook()
		if !warned {
			cli.Warn("the lock %s: killing the command", s.danger())
		}
	}
	// The watchdog's time is after the KILL of this process and before the deadline. Each time
	// that it gets, it also looks for processes that have left the group.
	if until := core.Deadline() - s.plan.Margin/2; until != s.watchdogUntil {
		s.watchdogUntil = until
		if err := s.watchdog.Until(until); err != nil {
			s.watchdog.Kill() // it is stopped or has ended; Died reports that
		}
	}
	return next
}

// runHook runs the hook of --on-lost. The caller has signaled the command before.
func (s *supervisor) runHook() { startHook(s.hook, "the lock "+s.danger()) }

// startHook runs the hook of --on-lost unless it has run. hook may be nil.
func startHook(hook lossHook, reason string) {
	if hook == nil {
		return
	}
	if err := hook.Start(reason); err != nil {
		cli.Warn("run the command of --on-lost: %v", err)
	}
}

// jeopardyEvents returns a channel, and a hook that sends to it. The events only inform the user
// or the program, so the hook drops them while the channel is full.
func jeopardyEvents() (<-chan zklock.Event, func(zklock.Event)) {
	events := make(chan zklock.Event, 16)
	return events, func(e zklock.Event) {
		select {
		case events <- e:
		default:
		}
	}
}

// warnJeopardy prints that no server answers while a lock is held, or that one answers
// again. safe is how long the lock is still safe, 0 if that is not known. servers is a
// suffix that names the servers.
func warnJeopardy(e zklock.Event, safe time.Duration, servers string) {
	switch {
	case e.Err == nil:
		cli.Warn("the servers answer again; the lock was held throughout")
	case safe > 0:
		cli.Warn("reconnecting: no answer from the servers; the lock is still held, safe for %s%s", cli.ShortDuration(safe), servers)
	default:
		cli.Warn("reconnecting: no answer from the servers; the lock is still held%s", servers)
	}
}

// danger returns why the command must end.
func (s *supervisor) danger() string {
	if err := s.hold.Err(); err != nil {
		return "is lost (" + lossReason(err) + ")"
	}
	return "is about to be lost (no answer from the servers)"
}

// lossReason returns why a hold was lost, without the name of the lock and that it was lost,
// which the messages around it say.
func lossReason(err error) string {
	if e, ok := errors.AsType[*zklock.Error](err); ok {
		err = e.Err
	}
	text := strings.TrimPrefix(err.Error(), zklock.ErrLost.Error()+": ")
	return strings.TrimPrefix(strings.TrimPrefix(text, "zklock: "), "zk: ")
}

// watchdogDied handles the end of the watchdog.
func (s *supervisor) watchdogDied() {
	s.watchdog.Bye() // closes the pipe
	s.watchdog = noWatchdog{}
	s.respawn.died(s.now(), errors.New("the watchdog has ended"))
}

// restartWatchdog replaces a watchdog that was killed, once that is due, and returns when
// to check again. Without a watchdog, the command still has the parent-death signal.
func (s *supervisor) restartWatchdog() time.Duration {
	if _, none := s.watchdog.(noWatchdog); !none {
		return forever
	}
	now := s.now()
	if now < s.respawn.at {
		if !s.respawn.warned {
			cli.Warn("%v; until another one runs, the command can continue without its lock if zklock is killed or stopped", s.respawn.why)
		}
		s.respawn.warned = true
		return s.respawn.at
	}
	s.respawn.started(now)
	w, err := s.respawn.start()
	if err == nil {
		if err = errors.Join(w.Until(s.watchdogUntil), w.Watch(s.cmd.Group(), s.env)); err != nil {
			w.Kill()
			w.Bye()
		}
	}
	if err != nil {
		s.respawn.died(s.now(), err)
		return s.respawn.at
	}
	s.watchdog = w
	return forever
}

// noWatchdog takes the place of a watchdog that has died.
type noWatchdog struct{}

func (noWatchdog) Died() <-chan struct{}     { return nil }
func (noWatchdog) Watch(int, []string) error { return nil }
func (noWatchdog) Until(time.Duration) error { return nil }
func (noWatchdog) Bye()                      {}
func (noWatchdog) Kill()                     {}

// newSupervisor starts a watchdog, and the command under the hold.
func newSupervisor(hold holding, plan Plan, timeout func() time.Duration, cmd process.Command, exe string, link *process.Link) (*supervisor, error) {
	w, err := process.StartWatchdog(exe)
	if err != nil {
		return nil, err
	}
	s := &supervisor{hold: hold, plan: plan, timeout: timeout, watchdog: w, env: cmd.Env, link: link, now: process.BootTime}
	cmd.Admit = func(group int, ended <-chan struct{}) error {
		if err := link.Admit(group, ended); err != nil {
			return err
		}
		return hold.Err() // the last check before the command runs
	}
	started, err := process.StartCommand(cmd, exe, func(group int) error {
		// From here on, the watchdog can end the command without this process.
		s.watchdogUntil = s.now() + hold.Remaining() - plan.Margin/2
		if err := errors.Join(w.Until(s.watchdogUntil), w.Watch(group, cmd.Env)); err != nil {
			return err
		}
		if err := awaitWatchdog(w, hold); err != nil {
			return err
		}
		return hold.Err()
	})
	if err != nil {
		w.Bye()
		return nil, err
	}
	s.cmd, s.begins = started, started.Began()
	s.respawn.start = func() (watchdog, error) { return process.StartWatchdog(exe) }
	s.respawn.started(s.now())
	return s, nil
}

// awaitWatchdog waits until a watchdog is ready, or the hold has ended.
func awaitWatchdog(w *process.Watchdog, hold holding) error {
	timer := time.NewTimer(hold.Remaining())
	defer timer.Stop()
	select {
	case <-w.Ready():
	case <-hold.Done():
	case <-w.Died():
		return errors.New("the watchdog has ended before the command began: the limit on processes may be too low (ulimit -u)")
	case <-timer.C:
		return errors.New("the watchdog was not ready in time")
	}
	return nil
}
