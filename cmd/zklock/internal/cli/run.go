package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/deadline"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
)

const runHelp = `Run holds LOCK while the command runs, and exits with the command's own code,
or 128+n if signal n ended it.

If the lock is about to be lost, the command gets TERM, and KILL in time to be
dead before anybody else can hold the lock. If zklock is killed, the command
dies with it. The command is in a process group of its own; signals reach all
of it.

The command finds ZKLOCK_NAME, ZKLOCK_PATH, ZKLOCK_TOKEN, ZKLOCK_MODE,
ZKLOCK_SESSION and ZKLOCK_SERVERS in its environment. The token is a number
that grows with every grant: give it to what the command writes to, so that it
can refuse smaller ones.

Other exit codes: 124 the lock was not acquired (-n, -w), 120 the lock was
lost, 125 zklock failed, 126 the command cannot be executed, 127 it was not
found, 2 wrong usage. --status-fd tells the command's codes from these.`

const runExample = `  zklock run nightly -- pg_dump -f /backup/db.sql
  zklock run -n -E 0 nightly -- /usr/local/bin/report     # another machine has it: fine
  zklock run -w 10 deploy -- sh -c './deploy --fence $ZKLOCK_TOKEN'`

// runFlags are the flags of run alone.
type runFlags struct {
	killAfter span.Value
	statusFD  int
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:                   "run LOCK [flags] -- COMMAND [ARGUMENT...]",
		Short:                 "Hold a lock while a command runs",
		Long:                  runHelp,
		Example:               runExample,
		DisableFlagsInUseLine: true,
		Args:                  runArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			return a.run(c, f, args[0], args[1:])
		},
	}
	a.set.serverFlags(c.Flags())
	a.set.waitFlags(c.Flags())
	c.Flags().Var(&f.killAfter, "kill-after", "time from TERM to KILL when the lock is about to be lost, at most an eighth of the session timeout (ZKLOCK_KILL_AFTER); default 2s, or that eighth")
	c.Flags().IntVar(&f.statusFD, "status-fd", -1, "write one line of JSON about the outcome to this `descriptor`")
	return c
}

// runArgs wants LOCK -- COMMAND, and says what is missing.
func runArgs(c *cobra.Command, args []string) error {
	dash := c.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return usage("give the name of a lock: zklock run LOCK -- COMMAND")
	case dash < 0 && len(args) == 1:
		return usage("give a command after two dashes: zklock run %s -- COMMAND", args[0])
	case dash < 0:
		return usage("put two dashes before the command: zklock run %s -- %s", args[0], args[1])
	case dash > 1:
		return usage("give one lock before the two dashes, not %d: zklock run %s -- COMMAND", dash, args[0])
	case len(args) == dash || args[dash] == "":
		return usage("give a command after the two dashes: zklock run %s -- COMMAND", args[0])
	}
	return nil
}

// run checks all that can be checked before a queue is joined, then runs, in
// the front's stead if there is a terminal.
func (a *app) run(c *cobra.Command, f runFlags, name string, argv []string) error {
	path, err := zklock.PathOf(name)
	status := &statusLine{Lock: name, Path: path}
	if err == nil {
		err = a.set.check(c.Flags())
	}
	plan := deadline.Plan{}
	if err == nil {
		if plan, err = deadline.New(a.set.session.D, f.killAfter.D); err != nil {
			err = usage("--kill-after: %w", err)
		}
	}
	out, statusErr := statusFile(f.statusFD)
	if err == nil {
		err = statusErr
	}
	cmd := child.Command{Args: argv}
	if err == nil {
		cmd.Path, err = child.Find(argv[0], os.Getenv("PATH"))
	}
	exe := ""
	if err == nil {
		exe, err = executable()
	}
	if err == nil && !a.keeper && front.Wanted() {
		var n int
		if n, err = front.Run(exe, a.args); err == nil {
			runtime.KeepAlive(out) // its finalizer closes it
			return &exitError{Code: n}
		}
	}
	keep(out, f.statusFD)
	if err == nil {
		r := &runner{app: a, plan: plan, cmd: cmd, exe: exe, status: status}
		err = r.run()
	}
	status.finish(err)
	status.write(out)
	return err
}

// finish sets what follows from the error that the run ended with. An outcome
// that is known already stands.
func (s *statusLine) finish(err error) {
	s.Exit = code(err)
	var e *exitError
	if err != nil && (!errors.As(err, &e) || e.Err != nil) {
		s.Error = err.Error()
	}
	if s.Outcome != "" {
		return
	}
	switch {
	case errors.Is(err, child.ErrNotFound):
		s.Outcome = outcomeNotFound
	case errors.Is(err, child.ErrNotExecutable):
		s.Outcome = outcomeNotExecutable
	case s.Exit == exitUsage:
		s.Outcome = outcomeUsage
	default:
		s.Outcome = outcomeFailed
	}
}

// runner is one run of a command under a lock.
type runner struct {
	app    *app
	plan   deadline.Plan
	cmd    child.Command
	exe    string
	status *statusLine
}

// run connects, waits, runs the command, and releases.
func (r *runner) run() error {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, child.Forwarded()...)
	outlivePipes()
	ctx, stop := interruptible(signals)
	set := &r.app.set
	me := owner(r.cmd.Args[0])
	began := time.Now()
	c, t, err := set.locks(ctx, zklock.Options{Owner: &me, OnJeopardy: jeopardy})
	if err != nil {
		defer stop()
		if ctx.Err() != nil {
			r.status.Outcome = outcomeInterrupted
		}
		return interrupted(ctx, err)
	}
	defer c.Close()
	l := c.Mutex(r.status.Path)
	hold, err := set.acquire(ctx, l, r.status.Lock, newWaitLine(r.app.link, me))
	if err != nil {
		defer stop()
		r.notAcquired(ctx, err)
		return err
	}
	stop()
	r.status.Acquired, r.status.Token = true, hold.Token()
	r.status.Waited = seconds(time.Since(began))
	if err := interrupted(ctx, nil); err != nil { // the signal came with the lock
		r.status.Outcome = outcomeInterrupted
		if failed := r.release(hold); failed != nil {
			warn("%v", failed)
		}
		return err
	}
	r.cmd.Env = told{
		name: r.status.Lock, path: r.status.Path, token: hold.Token(),
		session: hold.Session(), servers: t.current(),
	}.environ(os.Environ())
	return r.under(hold, signals)
}

// notAcquired notes why there is no lock.
func (r *runner) notAcquired(ctx context.Context, err error) {
	var e *exitError
	switch {
	case ctx.Err() != nil:
		r.status.Outcome = outcomeInterrupted
	case errors.As(err, &e):
		r.status.Outcome = outcomeNotAcquired
	}
}

// under runs the command while hold is held, then releases it.
func (r *runner) under(hold *zklock.Hold, signals <-chan os.Signal) error {
	began := time.Now()
	s, guard, err := newSupervisor(hold, r.plan, r.cmd, r.exe, r.app.link)
	if err != nil {
		return errors.Join(err, r.release(hold))
	}
	r.status.Started = true
	s.signals = signals
	exit, ended := s.run()
	guard.Bye()
	if other, ok := s.guard.(interface{ Bye() }); ok && s.guard != guarding(guard) {
		other.Bye()
	}
	lost := hold.Err()
	r.status.Held = seconds(time.Since(began))
	r.ended(exit)
	if err := r.release(hold); err != nil && lost == nil {
		warn("%s; the lock is free within %s at the latest", strings.TrimPrefix(err.Error(), "zklock: "), span.Short(r.app.set.session.D))
	}
	switch {
	case lost != nil:
		r.status.Outcome = outcomeLost
		return &exitError{exitLost, lost}
	case ended:
		r.status.Outcome = outcomeLost
		return &exitError{exitLost, errors.New("the command was ended because the lock was about to be lost")}
	case exit.Status() == 0:
		return nil
	}
	return &exitError{Code: exit.Status()}
}

// ended notes how the command ended.
func (r *runner) ended(exit child.Exit) {
	if exit.Signal != 0 {
		r.status.Outcome, r.status.Signal = outcomeSignalled, exit.Signal
		return
	}
	r.status.Outcome, r.status.Code = outcomeExited, &exit.Code
}

// release gives the lock back within a bounded time.
func (r *runner) release(hold *zklock.Hold) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.app.set.releaseTime())
	defer cancel()
	err := hold.Release(ctx)
	r.status.Released = err == nil
	return err
}

// jeopardy tells of servers that do not answer while a lock is held.
func jeopardy(e zklock.Event) {
	if e.Err != nil {
		warn("reconnecting: no answer from the servers; the lock is still held")
		return
	}
	warn("the servers answer again; the lock was held throughout")
}
