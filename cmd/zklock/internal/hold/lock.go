package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/inspect"
)

const lockHelp = `Lock acquires LOCK, prints its fencing token, and holds it until INT, TERM, or
HUP arrives; then it exits with 0. If the lock is lost, it exits with 120, but
stops no process: use zklock run to stop a command. On a terminal, ^Z suspends
the foreground process only, and the lock stays held.

With several locks (--lock), it prints one line "TOKEN PATH" per lock, or with
-o json or yaml one object with the mode, the session, and the locks. -o name
prints the paths of the locks.

On a release request (zklock revoke, Curator's Revoker), lock prints a notice
and keeps the lock. With --on-revoke term it releases the lock and exits with
0.

Programs in other languages use --stdio: they start zklock lock --stdio LOCK as
a child process with pipes. It writes JSON lines that say whether it waits or
holds the lock, how long the lock is safe, and how the hold ended. It releases
the lock when standard input ends, when it reads the line "release", or when its
parent process ends. The file docs/guides/other-languages.md describes the lines
and has programs in several languages. A signal does not end the hold, because
it often goes to the parent too: zklock reports it as a release request.

` + waitHelp + `

` + cli.ServersHelp + `the output of --json and -o yaml.

` + cli.ACLHelp + `

` + valueHelp + `

` + cli.LayoutHelp + `

` + cli.HoldHelp

const lockExample = `  zklock lock maintenance
  zklock lock --shared catalog
  zklock lock --json --count 3 --permits 2 api
  zklock lock --stdio nightly          # for a parent process`

// lockFlags are the flags of zklock lock, without those that all commands share.
type lockFlags struct {
	spec     lockSpec
	onRevoke onRevoke
	out      cli.Output
	stdio    bool
}

// check returns an error if a flag that only lock has is invalid.
func (f *lockFlags) check(set *pflag.FlagSet) error {
	if err := f.out.Check(set); err != nil || !f.stdio {
		return err
	}
	switch {
	case set.Changed("output") && f.out.Form != cli.OutJSON:
		return cli.UsageError("--stdio and -o %s: --stdio writes JSON; omit -o", f.out.Form)
	case f.onRevoke.term:
		return cli.UsageError("--stdio and --on-revoke term: the program that reads the lines releases the lock; omit --on-revoke")
	}
	return nil
}

// Lock returns zklock lock.
func Lock(a *cli.App) *cobra.Command {
	var f lockFlags
	c := &cobra.Command{
		Use:     "lock LOCK",
		Short:   "Hold a lock until interrupted",
		Long:    lockHelp,
		Example: lockExample,
		Args:    cli.Exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.Begin(c); err != nil {
				return err
			}
			if err := f.spec.check(c.Flags(), args[0]); err != nil {
				return err
			}
			if err := errors.Join(a.Settings.Check(c.Flags()), f.check(c.Flags())); err != nil {
				return err
			}
			if f.stdio {
				return lockStdio(a, &f)
			}
			return lock(a, &f)
		},
	}
	c.ValidArgsFunction = a.CompleteLocks
	addLockFlags(a, c, &f.spec, &f.onRevoke)
	f.out.Flag(c)
	c.Flags().BoolVar(&f.stdio, "stdio", false, "for a parent process: write events as JSON")
	return c
}

// lock acquires the lock and holds it until a signal, the loss, or a release request. On a
// terminal it runs the front process, whose keeper calls lock again: ^Z stops only the
// front, so the session of the keeper does not expire.
func lock(a *cli.App, f *lockFlags) error {
	if a.Settings.Link == nil && process.HasTerminal() {
		exe, err := cli.Executable()
		if err != nil {
			return err
		}
		exit, err := process.RunFront(exe, a.Args)
		if err != nil {
			return err
		}
		return cli.ExitLike(exit)
	}
	signals := catchSignals()
	ctx, stop := cli.Interruptible(signals, a.Settings.Link)
	defer stop()
	began := time.Now()
	me := owner("lock") // it has no command
	a.Settings.ReportServers(term.IsTerminal(2))
	var granted atomic.Pointer[zklock.Hold]
	c, _, err := a.Settings.Locks(ctx, f.spec.options(zklock.Options{Owner: &me, OnJeopardy: func(e zklock.Event) {
		safe := time.Duration(0)
		if hold := granted.Load(); hold != nil {
			safe = hold.Remaining()
		}
		warnJeopardy(e, safe, a.Settings.ServersSuffix())
	}}))
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer c.Close()
	hold, err := acquire(ctx, &a.Settings, c, &f.spec, newWaitLine(a.Settings.Link, &a.Settings), began)
	if err != nil {
		return err
	}
	granted.Store(hold)
	// If the token cannot be written, release the lock: the script that should read the
	// token does not know that it holds the lock, and would never end this process.
	written := make(chan error, 1)
	go func() { written <- f.print(os.Stdout, hold, a.Settings.ServersText()) }() // may block until the program ends
	writeErr := f.keep(ctx, hold, written)
	lost := hold.Err() // read before the release, after which Err reports the release
	// The release has a context of its own, because a signal may have ended ctx.
	end, cancel := context.WithTimeout(context.Background(), releaseTimeout(&a.Settings))
	defer cancel()
	line := a.Settings.Progress("releasing %s", f.spec.title())
	err = hold.Release(end)
	line.Stop()
	if lost == nil {
		lost = err // the release may have found that the znode is gone
	}
	if errors.Is(lost, zklock.ErrLost) {
		return &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("%w%s", lost, a.Settings.ServersSuffix())}
	}
	if err != nil {
		err = releaseError(&a.Settings, &f.spec, c.Health().Timeout, err)
	}
	if writeErr != nil {
		// Not %w: a closed pipe is no reason to end silently here, because no process knew of the lock.
		err = errors.Join(fmt.Errorf("write the token: %v", writeErr), err)
	}
	return err
}

// keep returns when the lock must be released or is lost. The token is being written
// meanwhile: keep returns the error of that.
func (f *lockFlags) keep(ctx context.Context, hold *zklock.Hold, written <-chan error) error {
	revoked := releaseRequests(hold)
	for {
		select {
		case err := <-written:
			if err != nil {
				return err
			}
			written = nil
		case <-ctx.Done():
			return nil
		case <-hold.Done():
			return nil
		case r := <-revoked:
			f.onRevoke.warn(f.spec.title(), r, "releasing it", "it is still held")
			if f.onRevoke.term {
				return nil
			}
		}
	}
}

// grant is the output of zklock lock -o json.
type grant struct {
	Mode    zklock.Mode `json:"mode"`
	Session string      `json:"session"`
	Locks   []lockState `json:"locks"`
	Servers string      `json:"servers"`
}

// print writes the granted locks and their tokens.
func (f *lockFlags) print(out io.Writer, hold *zklock.Hold, servers string) error {
	locks := f.spec.states(hold)
	return f.out.Write(out, cli.Result{
		Table: func(out io.Writer) (err error) {
			if len(locks) == 1 {
				_, err = fmt.Fprintln(out, locks[0].Token)
			} else {
				_, err = fmt.Fprintln(out, tokenLines(locks))
			}
			return err
		},
		Names: func() (paths []string) {
			for _, l := range locks {
				paths = append(paths, l.Path)
			}
			return paths
		},
		Data: func() []any {
			return []any{grant{f.spec.mode(), inspect.FormatSession(hold.Session()), locks, servers}}
		},
	})
}
