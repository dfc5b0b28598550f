package hold

import (
	"cmp"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/internal/legible"
)

const runHelp = `Run acquires LOCK, runs the command, and releases the lock when the command
exits. It exits with the command's exit code, or with 128+n if signal n ended
the command. The LOCK nightly is the znode /zklock/nightly. A LOCK that starts
with a slash is a path.

Loss of the lock: if the lock is lost without warning, for example because a
client deletes its znode, run sends KILL to the command. If the lock is about
to be lost, run sends TERM, and then KILL early enough that the command is dead
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

Hook: --on-lost COMMAND runs a shell command (sh -c, on Windows cmd /C) once:
when run sends TERM because of the lock, or at the loss if there was no TERM. It
has the command's ZKLOCK_ variables and ZKLOCK_LOST_REASON, but no passwords,
and writes to standard error. It delays neither TERM nor KILL. After 10s, or
when it exits, the remaining processes of its group are killed (on Windows only
COMMAND itself). zklock waits for it before it exits. If it fails, run prints a
warning.

Time limit: --max-hold 1h sends TERM to a command that still runs an hour after
its start, and KILL after --kill-after. Then run releases the lock and exits
with 123, whatever the command's exit code is.

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
command once and exits with the command's exit code. The command has no time
limit; processes that it leaves behind get KILL after --kill-after.

Jobs on a fleet: with --once-per 10m, run acquires the lock, and exits with 0
without running the command if a run that began within the last 9 minutes (the
period less a tenth, at most a minute) exited with 0. The servers remember that
run; the times are by their clock. So start the same command on every machine:
one machine runs it, and the others wait and then skip it. If the first machine
fails or crashes, the next one runs it. If a run cannot be recorded, run exits
with 125.
With --hold-at-least 30s, run holds the lock for at least 30 seconds even if the
command exits sooner. With --try, a cron job then runs once per round although
the clocks differ by some seconds, but the servers do not remember the run. On a
terminal, --hold-at-least has no effect.

Metrics: with --metrics FILE.prom, run writes metrics for the node exporter's
textfile collector: when the command last started and last succeeded, whether it
is running, how long it waited for and held the lock, and how many runs ended in
each way. Runs with different locks can share a file. If the file cannot be
written, run prints a warning.

` + cli.ServersHelp + `the JSON of --status-fd.

` + cli.ACLHelp + `

` + valueHelp + `

` + cli.LayoutHelp + `

` + cli.HoldHelp + `

Exit codes: the command's exit code, or one of these. If the command can exit
with these codes too, read the JSON line that --status-fd writes.
  2    wrong usage
  120  the lock was lost
  123  --max-hold ended the command
  124  the lock was not acquired (--try, --timeout); --conflict-exit-code
       sets another code
  125  zklock failed
  126  the command cannot be executed
  127  the command was not found`

// valueHelp is the part of the long help about --value.
const valueHelp = `Value: --value TEXT publishes a text of at most 1024 bytes with the entry, such
as the address of the service that the lock elects. zklock show, zklock ls -o
json, the page, and Client.Watch show it while the client waits for the lock or
holds it. Every client that may read the entry can read the value: do not
publish secrets. Semaphores, and several locks together, have no value.`

// waitHelp is the part of the long help about the flags for waiting.
const waitHelp = `Waiting: --timeout limits the wait; 0 means --try. --try also does not wait for
servers that are down: if each of them refuses the connection three times, the
command fails with 125. The default of --timeout is no limit, or 1m for several
locks (--lock), which can deadlock with clients that acquire the same locks one
by one: see --in-order. If the holder crashes, the servers free the lock within
about --session-timeout. --lock-delay makes an acquire wait longer than that, so
that work that the crashed holder started can finish; all clients of the lock
need the same delay. --allow-foreign-mutex lets a shared lock ignore entries of
Curator's mutex and kazoo's Lock, which ignore readers. The layouts kazoo and
mixed cannot detect kazoo's Lock.`

const runExample = `  zklock run nightly -- pg_dump -f /backup/db.sql
  zklock run -w 10 deploy -- sh -c './deploy --fence $ZKLOCK_TOKEN'`

// runFlags are the flags of zklock run, without those that all commands share.
type runFlags struct {
	spec      lockSpec
	onRevoke  onRevoke
	killAfter cli.Duration
	statusFD  int
	passAuth  bool
	metrics   runMetrics
	oncePer   cli.Duration
	atLeast   cli.Duration
	maxHold   cli.Duration
	onLost    string

	killAfterGiven bool // --kill-after is set; prepare sets it
}

// check returns an error if a flag that only run has is invalid.
func (f *runFlags) check(set *pflag.FlagSet) error {
	if set.Changed("max-hold") && f.maxHold.D <= 0 {
		return cli.UsageError("--max-hold is %v: give a time above 0", f.maxHold.D)
	}
	if f.atLeast.D < 0 {
		return cli.UsageError("--hold-at-least is %v: give a time from 0 on", f.atLeast.D)
	}
	if !set.Changed("once-per") {
		return nil
	}
	if f.oncePer.D <= 0 {
		return cli.UsageError("--once-per is %v: give a time above 0", f.oncePer.D)
	}
	for _, other := range []string{"shared", "count", "resizable", "node", "lock"} {
		if cli.Given(set, other) {
			return cli.UsageError("--once-per and --%s: runs are remembered for one exclusive lock; omit one of them", other)
		}
	}
	if f.spec.layout.Custom() || f.spec.layout.Kind == cli.LayoutWrite {
		return cli.UsageError("--once-per needs entry names that identify the acquire, and the layout %s has none; omit --once-per or --layout", f.spec.layout.Kind)
	}
	return nil
}

// Run returns zklock run.
func Run(a *cli.App) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:                   "run LOCK [flags] -- COMMAND [ARGUMENT...]",
		Short:                 "Hold a lock while a command runs",
		Long:                  runHelp,
		Example:               runExample,
		DisableFlagsInUseLine: true, // Use already shows them, before the dashes
		Args:                  runArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return run(a, c, &f, args[0], args[1:])
		},
	}
	c.ValidArgsFunction = a.CompleteRun
	addLockFlags(a, c, &f.spec, &f.onRevoke)
	c.Flags().Var(&f.killAfter, "kill-after", "time from TERM to KILL; default: at most 2s")
	c.Flags().BoolVar(&f.passAuth, "pass-auth", false, "pass ZKLOCK_AUTH, ZKLOCK_SASL to the command")
	c.Flags().IntVar(&f.statusFD, "status-fd", -1, "write the outcome as JSON to this `descriptor`")
	c.Flags().Var(&f.oncePer, "once-per", "skip if a run within this time succeeded")
	c.Flags().Var(&f.atLeast, "hold-at-least", "hold the lock for at least this long")
	c.Flags().Var(&f.maxHold, "max-hold", "end the command after this time")
	c.Flags().StringVar(&f.onLost, "on-lost", "", "run this shell `command` if the lock is lost")
	c.Flags().StringVar(&f.metrics.path, "metrics", "", "write metrics to this .prom `file`")
	_ = c.MarkFlagFilename("metrics", "prom") // the flag exists
	return c
}

// runArgs checks for LOCK -- COMMAND and says what is missing.
func runArgs(c *cobra.Command, args []string) error {
	dash := c.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return cli.UsageError("give the name of a lock: zklock run LOCK -- COMMAND")
	case dash < 0 && len(args) == 1:
		return cli.UsageError("give a command after two dashes: zklock run %s -- COMMAND", legible.Word(args[0]))
	case dash < 0:
		return cli.UsageError("put two dashes before the command: zklock run %s -- %s", legible.Word(args[0]), legible.Word(args[1]))
	case dash > 1:
		return cli.UsageError("give one lock before the two dashes, not %d: zklock run %s -- COMMAND; for several, zklock run %s --lock %s -- COMMAND", dash, legible.Word(args[0]), legible.Word(args[0]), legible.Word(args[1]))
	case len(args) == dash || args[dash] == "":
		return cli.UsageError("give a command after the two dashes: zklock run %s -- COMMAND", legible.Word(args[0]))
	}
	return nil
}

// prepare checks everything that needs neither a server nor the command, so that a mistake is
// reported before the wait.
func (f *runFlags) prepare(a *cli.App, c *cobra.Command, name string) error {
	if err := a.Begin(c); err != nil {
		return err
	}
	if err := f.spec.check(c.Flags(), name); err != nil {
		return err
	}
	if err := f.check(c.Flags()); err != nil {
		return err
	}
	if err := f.metrics.begin(f.spec.paths[0]); err != nil {
		return err
	}
	if err := a.Settings.Check(c.Flags()); err != nil {
		return err
	}
	f.killAfterGiven = c.Flags().Changed("kill-after")
	if _, err := f.plan(a.Settings.Session.D); err != nil {
		return cli.UsageError("--kill-after: %w", err)
	}
	return nil
}

// plan returns the plan for a session timeout.
func (f *runFlags) plan(session time.Duration) (Plan, error) {
	if !f.killAfterGiven {
		return defaultPlan(session), nil
	}
	return newPlan(session, f.killAfter.D)
}

// run checks the command line. On a terminal it then runs the front process, whose keeper calls
// run again. Otherwise it runs the command. It writes the status line also for errors.
func run(a *cli.App, c *cobra.Command, f *runFlags, name string, argv []string) error {
	err := f.prepare(a, c, name)
	r := &runner{app: a, flags: f, cmd: process.Command{Args: argv}, status: newStatusLine(name, &f.spec)}
	// An earlier error has priority. A bad descriptor then only means that there is no
	// status line.
	out, statusErr := statusFile(f.statusFD)
	if err = cmp.Or(err, statusErr); err == nil {
		r.cmd.Path, err = process.FindCommand(argv[0], process.SearchPath())
	}
	exe := ""
	if err == nil {
		exe, err = cli.Executable()
	}
	if err == nil && a.Settings.Link == nil && process.HasTerminal() {
		var exit process.Exit
		if exit, err = process.RunFront(exe, a.Args); err == nil {
			runtime.KeepAlive(out) // its finalizer closes it
			return cli.ExitLike(exit)
		}
	}
	if out != nil && f.statusFD > 2 { // the command must not inherit it and keep it open
		process.CloseOnExec(f.statusFD)
	}
	if err == nil {
		r.exe = process.RunningProgram(exe)
		defer func() { r.hook.Close() }() // after the status line, because a hook can take long
		err = r.run()
	}
	r.status.finish(err)
	if out != nil {
		r.status.write(out)
	}
	f.metrics.ended(r.status, time.Now())
	return err
}
