package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// runner runs one command under a lock.
type runner struct {
	app     *cli.App
	flags   *runFlags
	plan    Plan                 // for the session of the hold
	timeout func() time.Duration // returns the session timeout that the servers granted
	cmd     process.Command
	exe     string
	status  *statusLine
	hook    *process.Hook // of --on-lost; nil until the lock is acquired
}

// run connects, acquires the lock, runs the command, and releases the lock.
func (r *runner) run() error {
	// If too few can be created, the runtime ends this process, so this comes before the acquire.
	process.ReserveThreads(process.WrapperThreads)
	signals := catchSignals()
	ctx, stop := cli.Interruptible(signals, r.app.Settings.Link)
	set := &r.app.Settings
	me := owner(r.cmd.Args[0])
	began := time.Now()
	set.ReportServers(term.IsTerminal(2))
	r.status.Servers = set.ServersText()
	// The supervisor prints the events, because it knows whether the command is ending.
	events, onJeopardy := jeopardyEvents()
	c, t, err := set.Locks(ctx, r.flags.spec.options(zklock.Options{Owner: &me, OnJeopardy: onJeopardy}))
	if err != nil {
		defer stop()
		if ctx.Err() != nil {
			r.status.Outcome = outcomeInterrupted
		}
		return cli.Interrupted(ctx, err)
	}
	defer c.Close()
	r.timeout = func() time.Duration { return c.Health().Timeout }
	if err := r.planHold(); err != nil {
		stop()
		return err
	}
	hold, err := acquire(ctx, set, c, &r.flags.spec, newWaitLine(r.app.Settings.Link, set), began)
	if err != nil {
		defer stop()
		r.notAcquired(ctx, err)
		return err
	}
	skipped := r.skip(ctx, hold)
	stop() // from here on the supervisor reads the signals
	r.status.Acquired, r.status.Locks = true, r.flags.spec.states(hold)
	r.status.Token = r.status.Locks[0].Token
	r.status.Waited = seconds(time.Since(began))
	if err := cli.Interrupted(ctx, nil); err != nil { // the signal arrived together with the grant
		r.status.Outcome = outcomeInterrupted
		if failed := r.release(hold); failed != nil {
			cli.Warn("%v", failed)
		}
		return err
	}
	if skipped != nil {
		return skipped
	}
	if err := r.planHold(); err != nil { // the wait may have had several sessions
		if failed := r.release(hold); failed != nil {
			cli.Warn("%v", failed)
		}
		return err
	}
	lock := lockEnvironment{locks: r.status.Locks, mode: r.flags.spec.mode(), session: hold.Session(), servers: t.Current()}
	lock.identity = set.Identity.CommandEnvironment(r.flags.passAuth)
	r.cmd.Withheld = process.InheritedFiles(set.Identity.SecretFiles())
	r.cmd.Env = lock.environ(os.Environ())
	if r.flags.onLost != "" {
		lock.identity = set.Identity.CommandEnvironment(false)
		if r.hook, err = process.NewHook(r.exe, r.flags.onLost, lock.environ(os.Environ()), process.HookTime); err != nil {
			cli.Warn("%v", err)
		}
	}
	return r.runUnder(hold, signals, events)
}

// planHold makes the plan for the session timeout that the servers granted.
func (r *runner) planHold() (err error) {
	granted, requested := r.timeout(), r.app.Settings.Session.D
	if r.plan, err = r.flags.plan(granted); err != nil {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("--kill-after: %w; the servers granted %v instead of %v, because of their maxSessionTimeout",
			err, granted, requested)}
	}
	return nil
}

// notAcquired records why the lock was not acquired.
func (r *runner) notAcquired(ctx context.Context, err error) {
	_, known := errors.AsType[*cli.ExitError](err)
	switch {
	case ctx.Err() != nil:
		r.status.Outcome = outcomeInterrupted
	case known && !errors.Is(err, errUnanswered):
		r.status.Outcome = outcomeNotAcquired
	}
}

// runUnder runs the command while the lock is held, then releases the lock.
func (r *runner) runUnder(hold *zklock.Hold, signals <-chan os.Signal, events <-chan zklock.Event) error {
	began := time.Now()
	s, err := newSupervisor(hold, r.plan, r.timeout, r.cmd, r.exe, r.app.Settings.Link)
	if err != nil {
		return r.notStarted(err, r.release(hold))
	}
	s.onBegin = func() {
		r.status.Started = true
		r.flags.metrics.started(time.Now())
	}
	s.signals, s.events, s.servers = signals, events, r.app.Settings.ServersSuffix()
	// A release request that arrived before this call is in the znode, which Revoked
	// reads first.
	s.revoked, s.onRevoke, s.title = releaseRequests(hold), r.flags.onRevoke, r.flags.spec.title()
	s.hook, s.maxHold.limit, s.records = r.hook, r.flags.maxHold.D, r.flags.oncePer.D > 0
	exit, ended := s.run()
	r.status.Revoked = s.wasRevoked
	// The watchdog must learn before the deadline that the command has exited. Otherwise
	// it would kill the command's background processes, which may continue.
	s.watchdog.Bye()
	if s.notBegun != nil {
		return r.notStarted(s.notBegun, r.release(hold))
	}
	// Read the loss before the release, after which Err reports the release.
	lost := hold.Err()
	var unrecorded error
	if lost == nil && !ended && !s.stopping {
		unrecorded = r.recordRun(hold, exit)
		r.linger(hold, began, signals)
	}
	r.status.Held = seconds(time.Since(began))
	r.exited(exit)
	err = r.release(hold)
	switch {
	case err == nil || lost != nil:
	case errors.Is(err, zklock.ErrLost): // the release found that the znode is gone
		lost = err
	default:
		cli.Warn("%v", releaseError(&r.app.Settings, &r.flags.spec, r.timeout(), err))
	}
	switch {
	case lost != nil:
		r.status.Outcome = outcomeLost
		startHook(r.hook, "the lock is lost ("+lossReason(lost)+")")
		if ended {
			return &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("the command was ended because the lock was lost%s", r.app.Settings.ServersSuffix())}
		}
		return &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("%w%s", lost, r.app.Settings.ServersSuffix())}
	case ended:
		r.status.Outcome = outcomeLost
		startHook(r.hook, "the lock was about to be lost")
		return &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("the command was ended because the lock was about to be lost%s", r.app.Settings.ServersSuffix())}
	case s.maxHold.phase != Wait:
		r.status.Outcome = outcomeMaxHold
		return &cli.ExitError{Code: cli.ExitMaxHold}
	case unrecorded != nil:
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("the command succeeded, but another client may run it again: %w", unrecorded)}
	case exit.Status() == 0:
		return nil
	}
	return cli.ExitLike(exit)
}

// notStarted returns the error for a command that did not start. If the reason is the loss
// of the lock, it omits the release error, which reports the same loss.
func (r *runner) notStarted(err, release error) error {
	if errors.Is(err, zklock.ErrLost) {
		r.status.Outcome = outcomeLost
		startHook(r.hook, "the lock is lost ("+lossReason(err)+")")
		return &cli.ExitError{Code: cli.ExitLost, Err: err}
	}
	return errors.Join(err, release)
}

// exited records how the command ended.
func (r *runner) exited(exit process.Exit) {
	if exit.Signal != 0 {
		r.status.Outcome, r.status.Signal = outcomeSignalled, exit.Signal
		return
	}
	r.status.Outcome, r.status.Code = outcomeExited, &exit.Code
}

// release releases the lock within releaseTimeout.
func (r *runner) release(hold *zklock.Hold) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout(&r.app.Settings))
	defer cancel()
	line := r.app.Settings.Progress("releasing %s", r.flags.spec.title())
	err := hold.Release(ctx)
	line.Stop()
	r.status.Released = err == nil
	return err
}
