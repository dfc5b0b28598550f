package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/deadline"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
)

const runHelp = `Run acquires LOCK, runs the command, and releases the lock when the command
exits. It exits with the command's exit code, or with 128+n if signal n ended
the command.

Loss of the lock: if the lock is lost at once, for example because a client
deletes its znode, run sends KILL to the command. If the lock is about to be
lost, run sends TERM, and then KILL early enough that the command is dead
before another client can hold the lock. If zklock is killed, the command is
killed too. The command has its own process group, and signals go to the whole
group.

Background processes: if the command exits by itself, run releases the lock,
and the command's background processes keep running. If a signal or --on-revoke
term ends the command, run first ends the remaining processes of its group, and
on Linux all its descendants, including daemons: it sends TERM, and KILL after
--kill-after. Processes that a script started before it replaced itself with
zklock (exec) are not included. To start a daemon that survives, use a service
manager, such as systemd-run. --kill-after is at most an eighth of the session
timeout; the default is 2s or that eighth, whichever is shorter.

Kinds of locks: LOCK is exclusive and granted in order of arrival. Shared locks
(--shared), write locks (--write), and exclusive locks of the same name exclude
each other like flock -s and flock -x.
  --shared     a shared lock, held by any number of readers
  --count N    a semaphore with N permits; --permits K acquires K of them
  --lock NAME  another lock: run holds all of them or none. --shared,
               --write, and --count apply to all of them.
  --node       a single ephemeral znode, without a queue

` + waitHelp + `

Environment of the command: run sets ZKLOCK_NAME, ZKLOCK_PATH, ZKLOCK_TOKEN,
ZKLOCK_MODE (exclusive, shared, or permit), ZKLOCK_SESSION, and ZKLOCK_SERVERS.
The fencing token grows with every grant: pass it to the resource that the
command writes to, and let the resource reject any smaller number. With several
locks these variables describe the first lock, and ZKLOCK_LOCKS has one line
"TOKEN PATH" per lock. The names of the TLS and credentials files are set too.
ZKLOCK_AUTH and ZKLOCK_SASL are removed unless --pass-auth is set.

Release requests: on a release request (zklock revoke, Curator's Revoker), run
prints a notice and continues. With --on-revoke term, run sends TERM to the
command once and exits with the command's exit code. The command can take its
time; processes that it leaves get KILL after --kill-after.

Jobs on a fleet: with --hold-at-least 30s, run holds the lock for at least 30
seconds even if the command exits sooner. A cron job that starts on every
machine then runs once per round although the clocks differ by some seconds. On
a terminal, --hold-at-least has no effect.

Metrics: with --metrics FILE.prom, run writes metrics for the node exporter's
textfile collector: when the command last started and last succeeded, whether it
is running, how long it waited for and held the lock, and how many runs ended in
each way. Runs with different locks can share a file. If the file cannot be
written, run prints a warning.

` + whereHelp + `the line of --status-fd.

` + aclHelp + `

` + layoutHelp + `

Exit codes: the command's exit code, or one of these. The line of --status-fd
tells them apart.
  2    wrong usage
  120  the lock was lost
  124  the lock was not acquired (--try, --timeout); --conflict-exit-code
       sets another code
  125  zklock failed
  126  the command cannot be executed
  127  the command was not found`

// waitHelp is the part of the long help about the flags for waiting.
const waitHelp = `Waiting: --timeout limits the wait; 0 means --try. The default is no limit, or
1m for several locks (--lock), which can deadlock with clients that acquire the
same locks one by one: see --in-order. --session-timeout is the time in which
the servers free the lock after its holder crashed. --lock-delay makes an
acquire wait longer than that, so that the effects of the crashed holder can
end; all clients of the lock need the same delay. --beside-foreign lets a
shared lock ignore entries of Curator's mutex and kazoo's Lock, which do not
see readers.`

const runExample = `  zklock run nightly -- pg_dump -f /backup/db.sql
  zklock run -n -E 0 nightly -- ./report       # skip if it is held
  zklock run -w 10 deploy -- sh -c './deploy --fence $ZKLOCK_TOKEN'
  zklock run --count 3 api -- ./call-api         # 3 at once, fleet-wide
  zklock run stock --lock orders -- ./book       # both locks or neither
  zklock run --servers zk1:2281 --tls-ca ca.pem nightly -- ./report`

// runFlags are the flags of run alone.
type runFlags struct {
	claim     claim
	revoke    onRevoke
	killAfter span.Value
	statusFD  int
	passAuth  bool
	metrics   runMetrics
	atLeast   span.Value
}

// runCommand is zklock run. What kind of lock is meant, and how it is waited for,
// are flags that lock has as well.
func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:                   "run LOCK [flags] -- COMMAND [ARGUMENT...]",
		Short:                 "Hold a lock while a command runs",
		Long:                  runHelp,
		Example:               runExample,
		DisableFlagsInUseLine: true, // the line above says where they go: before the dashes
		Args:                  runArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c, &f, args[0], args[1:])
		},
	}
	a.serverFlags(c)
	c.ValidArgsFunction = a.completeRun
	a.set.waitFlags(c.Flags())
	f.claim.flags(c.Flags())
	offer(c, "layout", layoutNames())
	offer(c, "acl", []string{aclOpen, aclCreator, aclCreatorRead})
	_ = c.RegisterFlagCompletionFunc("lock", a.completeMore) // the flag is there
	working(c)
	f.revoke.flag(c)
	c.Flags().Var(&f.killAfter, "kill-after", "time from TERM to KILL; default: 2s or less")
	c.Flags().BoolVar(&f.passAuth, "pass-auth", false, "pass ZKLOCK_AUTH, ZKLOCK_SASL to the command")
	c.Flags().IntVar(&f.statusFD, "status-fd", -1, "write the outcome as JSON to this `descriptor`")
	c.Flags().Var(&f.atLeast, "hold-at-least", "hold the lock for at least this long")
	c.Flags().StringVar(&f.metrics.path, "metrics", "", "write metrics to this .prom `file`")
	_ = c.MarkFlagFilename("metrics", "prom") // the flag is there
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
		return usage("give one lock before the two dashes, not %d: zklock run %s -- COMMAND; for several, zklock run %s --lock %s -- COMMAND", dash, args[0], args[0], args[1])
	case len(args) == dash || args[dash] == "":
		return usage("give a command after the two dashes: zklock run %s -- COMMAND", args[0])
	}
	return nil
}

// run checks all that can be checked before a queue is joined, then runs, in
// the front's stead if there is a terminal. What is wrong from here on has a
// status line.
func (a *app) run(c *cobra.Command, f *runFlags, name string, argv []string) error {
	err := a.begin(c)
	if err == nil {
		err = f.claim.check(c.Flags(), name)
	}
	if err == nil {
		err = f.metrics.begin(f.claim.paths[0])
	}
	status := f.claim.status(name)
	if err == nil {
		err = a.set.check(c.Flags())
	}
	plan := deadline.Plan{}
	if err == nil {
		if plan, err = deadline.New(a.set.session.D, f.killAfter.D); err != nil {
			err = usage("--kill-after: %w", err)
		}
	}
	// An earlier error is told to the user; this one then matters only in that the
	// line about it can't be written.
	out, statusErr := statusFile(f.statusFD)
	if err == nil {
		err = statusErr
	}
	// A command that can't be run is found out now: nobody should have waited an
	// hour for a lock to learn of a typing error.
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
		r := &runner{app: a, claim: &f.claim, revoke: f.revoke, plan: plan, cmd: cmd, exe: exe, status: status, metrics: &f.metrics, atLeast: f.atLeast.D, passAuth: f.passAuth}
		err = r.run()
	}
	status.finish(err)
	status.write(out)
	f.metrics.ended(status, time.Now())
	return err
}

// status begins the line about a run under the lock called name.
func (k *claim) status(name string) *statusLine {
	s := &statusLine{Lock: name, Mode: string(k.mode()), Locks: k.locks(nil)}
	if len(k.paths) > 0 {
		s.Path = k.paths[0]
	}
	return s
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
	claim  *claim
	revoke onRevoke
	plan   deadline.Plan
	cmd    child.Command
	exe    string
	status *statusLine
	// metrics are told when the command starts.
	metrics *runMetrics
	// atLeast is for how long the lock is held even if the command ends sooner.
	atLeast time.Duration
	// passAuth leaves the credentials in the command's environment.
	passAuth bool
}

// run connects, waits, runs the command, and releases.
func (r *runner) run() error {
	// One channel for the whole run: while waiting a signal gives up, later it goes
	// to the command, and none is lost where one turns into the other.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, child.Forwarded()...)
	outlivePipes()
	ctx, stop := interruptible(signals, r.app.link)
	set := &r.app.set
	me := owner(r.cmd.Args[0])
	began := time.Now()
	set.sayWhere(term.IsTerminal(2))
	r.status.Servers = set.where()
	// Told by whoever follows the command, who knows what else was said.
	news := make(chan zklock.Event, 16)
	c, t, err := set.locks(ctx, r.claim.options(zklock.Options{Owner: &me, OnJeopardy: func(e zklock.Event) {
		select {
		case news <- e:
		default: // nobody has read for long, and the command has other worries
		}
	}}))
	if err != nil {
		defer stop()
		if ctx.Err() != nil {
			r.status.Outcome = outcomeInterrupted
		}
		return interrupted(ctx, err)
	}
	defer c.Close()
	hold, err := set.acquire(ctx, c, r.claim, newWaitLine(r.app.link, me, set.on()), began)
	if err != nil {
		defer stop()
		r.notAcquired(ctx, err)
		return err
	}
	stop() // from here on the supervisor reads the signals
	r.status.Acquired, r.status.Locks = true, r.claim.locks(hold)
	r.status.Token = r.status.Locks[0].Token
	r.status.Waited = seconds(time.Since(began))
	if err := interrupted(ctx, nil); err != nil { // the signal came with the lock
		r.status.Outcome = outcomeInterrupted
		if failed := r.release(hold); failed != nil {
			warn("%v", failed)
		}
		return err
	}
	r.cmd.Env = told{
		locks: r.status.Locks, mode: r.claim.mode(), session: hold.Session(), servers: t.current(),
		identity: set.who.forCommand(r.passAuth),
	}.environ(os.Environ())
	return r.under(hold, signals, news)
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
func (r *runner) under(hold *zklock.Hold, signals <-chan os.Signal, news <-chan zklock.Event) error {
	began := time.Now()
	s, err := newSupervisor(hold, r.plan, r.cmd, r.exe, r.app.link)
	if err != nil {
		return r.notStarted(err, r.release(hold))
	}
	r.status.Started = true
	r.metrics.started(began)
	// Who asked between the grant and now is heard too: the wish is in the znode,
	// which the watch reads first.
	s.signals = signals
	s.revoked = hold.Revoked()
	s.asked = func() bool { return r.asked(s.cmd) }
	s.news, s.on = news, r.app.set.on()
	exit, ended := s.run()
	// The watchdog must know that the command is gone before the deadline passes:
	// it would kill what the command left behind, which may go on.
	s.guard.Bye()
	// Before the release, after which it would say released.
	lost := hold.Err()
	if lost == nil && !ended && !s.stopping {
		r.linger(hold, began, signals)
	}
	r.status.Held = seconds(time.Since(began))
	r.ended(exit)
	err = r.release(hold)
	switch {
	case err == nil || lost != nil:
	case errors.Is(err, zklock.ErrLost): // the release found that the znode is gone
		lost = err
	default:
		warn("%s; the lock is free within %s at the latest", strings.TrimPrefix(err.Error(), "zklock: "), span.Short(r.app.set.session.D))
	}
	switch {
	case lost != nil:
		r.status.Outcome = outcomeLost
		return &exitError{exitLost, fmt.Errorf("%w%s", lost, r.app.set.on())}
	case ended:
		r.status.Outcome = outcomeLost
		return &exitError{exitLost, fmt.Errorf("the command was ended because the lock was about to be lost%s", r.app.set.on())}
	case exit.Status() == 0:
		return nil
	}
	return &exitError{Code: exit.Status()}
}

// notStarted is the error for a command that could not be started, or that was not
// because its lock was lost by then, which the release says once more.
func (r *runner) notStarted(err, release error) error {
	if errors.Is(err, zklock.ErrLost) {
		r.status.Outcome = outcomeLost
		return &exitError{exitLost, err}
	}
	return errors.Join(err, release)
}

// asked is what happens when somebody asks for the lock back. It reports whether the
// command was told to end.
func (r *runner) asked(cmd process) bool {
	r.status.Revoked = true
	r.revoke.tell(r.claim.title(), "ending the command", "the command goes on")
	if r.revoke.term {
		cmd.Terminate()
	}
	return r.revoke.term
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

// jeopardy tells of servers that do not answer while a lock is held; on says which.
func jeopardy(e zklock.Event, on string) {
	if e.Err != nil {
		warn("reconnecting: no answer from the servers; the lock is still held%s", on)
		return
	}
	warn("the servers answer again; the lock was held throughout")
}
