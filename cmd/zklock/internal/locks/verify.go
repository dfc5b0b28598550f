package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
)

const verifyHelp = `Verify checks whether LOCK is held with the fencing TOKEN, which zklock run
passes to its command as $ZKLOCK_TOKEN. It makes the servers commit a write
that changes nothing before it reads, so a server that lags behind cannot give
a wrong answer.

What it proves: at one moment during the check, an entry with this token held
the lock, and no client that the entry excludes held it.

What it does not prove:
  - that the lock is still held. It can be lost right after the answer. A
    resource that rejects old tokens is safe; a script that verifies and
    then acts only makes the gap smaller.
  - that the caller who presents a token holds the lock. A token is not a
    secret: every client that can read the locks sees it. Authenticate
    callers by other means.
  - that the entry is genuine. Every client that can write below LOCK can
    create entries, with any owner. After a downgrade, the token is data
    in the entry of the holder, which every client that can write to the
    entry can change. Use ACLs to keep other clients out: see zklock
    doctor.

With --watch it repeats the check every two seconds, until no hold has the
token, the check fails, or it is interrupted. Each check costs one such write; a
node lock and a custom layout need reads too.

A client that can create entries can give one a name that sorts before the
holder's. The holder does not notice that, so the hold may still exist: verify
then exits with 125, and with --watch it waits until the holder's entry is gone.
It does the same for a waiter behind a downgraded hold, which looks the same.

Verify exits with 125 if no entry that it may read has the token, but it may not
read all entries: give it the credentials of a client of the lock.

With -o name it prints the lock's path if a hold has the token, otherwise
nothing.

Exit codes:
  0    a hold of the lock has the token
  1    no hold has the token, or with --watch, no longer
  125  the check failed`

const verifyExample = `  zklock verify deploy 4294967321
  zklock verify deploy $ZKLOCK_TOKEN && ./publish    # in zklock run
  zklock verify -o json deploy 4294967321 | jq .held
  zklock verify --watch deploy 4294967321; [ $? = 1 ] && ./take-over`

// Verify returns zklock verify.
func Verify(a *cli.App) *cobra.Command {
	var f readFlags
	c := &cobra.Command{
		Use:     "verify LOCK TOKEN",
		Short:   "Check that the hold with a token still exists",
		Long:    verifyHelp,
		Example: verifyExample,
		Args:    cli.Exactly(2, "a lock and a token"),
		RunE: func(c *cobra.Command, args []string) error {
			token, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || token <= 0 {
				return cli.UsageError("%q is not a token: give the number from ZKLOCK_TOKEN in zklock run, from zklock lock, or from zklock show", args[1])
			}
			return withLock(a, c, &f, args[0], func(ctx context.Context, l *oneLock) error {
				if f.watch {
					return watchToken(a, l, token)
				}
				_, err := verify(a, ctx, l, token, nil)
				return err
			})
		},
	}
	lockReadFlags(a, c, &f)
	c.Flags().BoolVar(&f.watch, "watch", false, "repeat until no hold has the token")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return a.CompleteTokens(c, args, begun)
		}
		return a.CompleteLocks(c, args, begun)
	}
	return c
}

// verifyView is the output of verify as JSON.
type verifyView struct {
	Path  string `json:"path"`
	Token int64  `json:"token,string"`
	Held  bool   `json:"held"`
	// Holders are the entries that hold with the token. If there are none, they are the
	// entries that hold the lock.
	Holders []inspect.EntryView `json:"holders"`
}

// verify checks the token, prints the result, and returns the entries that hold with it. With
// errOvertaken, it prints nothing, and returns the entries that can belong to the hold. gone are
// entries of the hold that no longer exist.
func verify(a *cli.App, ctx context.Context, l *oneLock, token int64,
	gone []inspect.Entry) ([]inspect.Entry, error) {
	limited, cancel := a.Settings.ConnectContext(ctx)
	defer cancel()
	line := a.Settings.Progress("reading %s", l.name)
	err := commitRead(limited, l.z, l.path)
	line.Stop()
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", l.name, err)
	}
	s, err := readLock(&a.Settings, ctx, l)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", l.name, err)
	}
	err = s.CheckToken(token)
	if err != nil && !(errors.Is(err, zk.ErrNoAuth) && hasEnded(s, token, gone)) {
		return nil, fmt.Errorf("verify %s: %w", l.name, err)
	}
	held, no := entriesWithToken(s, l.name, token)
	holders := held
	if no != nil {
		if overtaken := s.Overtaken(token); len(overtaken) > 0 {
			return overtaken, fmt.Errorf("verify %s: %w: the entry of %s with token %d exists, but an entry that was created later, or that may not be read, is ahead of it; %s",
				l.name, errOvertaken, cli.DescribeOwner(overtaken[0].Entry), token, describeHolders(s))
		}
		holders = s.Holders()
	}
	err = l.out.Write(os.Stdout, cli.Result{
		Table: func(out io.Writer) error { return printHeld(out, l.name, held) },
		Names: func() []string {
			if no != nil {
				return nil
			}
			return []string{l.path}
		},
		Data: func() []any { return []any{verifyView{l.path, token, no == nil, inspect.EntryViews(holders)}} },
	})
	if err != nil {
		return nil, err
	}
	if no != nil && l.out.Form != cli.OutTable {
		return nil, &cli.ExitError{Code: cli.ExitNo} // the output already says why
	}
	return held, no
}

// hasEnded reports whether a hold has ended because its entries are gone, although some entries
// may not be read. A writer can have a shared entry instead, after a downgrade. An entry whose data
// claim the token may be of another client.
func hasEnded(s *inspect.Lock, token int64, gone []inspect.Entry) bool {
	claims := func(e inspect.Entry) bool { return e.Owner.Token == token }
	if len(gone) == 0 || slices.ContainsFunc(gone, claims) {
		return false
	}
	unread := func(e inspect.Entry) bool { return e.Mode == zklock.Shared && e.Token == 0 }
	return gone[0].Mode != zklock.Exclusive || !slices.ContainsFunc(s.Entries, unread)
}

// errOvertaken means that a hold with the token can exist, although another entry counts as
// the holder: see [inspect.Lock.Overtaken].
var errOvertaken = errors.New("cannot tell whether the hold still exists")

// verifyInterval is the time between two checks of --watch.
const verifyInterval = 2 * time.Second

// watchToken checks until the token does not hold, and prints that. While the entries that
// hold with the token exist, it holds, because no entry can get ahead of them.
func watchToken(a *cli.App, l *oneLock, token int64) error {
	signals := cli.TerminationSignals()
	defer signal.Stop(signals)
	ctx, stop := cli.Interruptible(signals, nil)
	defer stop()
	err := cli.UntilInterrupted(ctx, func() error { return checkUntilFree(a, ctx, l, token) })
	return cli.Interrupted(ctx, err)
}

// checkUntilFree checks until the token does not hold, or ctx ends.
func checkUntilFree(a *cli.App, ctx context.Context, l *oneLock, token int64) error {
	tick := time.NewTicker(verifyInterval)
	defer tick.Stop()
	var held []inspect.Entry
	for {
		var err error
		held, err = verify(a, ctx, l, token, held)
		if errors.Is(err, errOvertaken) {
			cli.Warn("%v", err)
			err = nil // the hold has certainly ended only when its entries are gone
		}
		for err == nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
			var all bool
			if all, err = exist(&a.Settings, ctx, l, held); err == nil && !all {
				break // a writer may have been downgraded
			}
		}
		if err != nil {
			return err
		}
	}
}

// exist reports whether all of these entries exist, by the answer of a quorum.
func exist(s *cli.Settings, ctx context.Context, l *oneLock, held []inspect.Entry) (bool, error) {
	ctx, cancel := s.ConnectContext(ctx)
	defer cancel()
	entries := make([]zklock.Entry, len(held))
	for i, e := range held {
		entries[i] = e.Entry
	}
	all, err := inspect.Exist(ctx, l.z, entries)
	if err != nil {
		return false, fmt.Errorf("verify %s: %w", l.name, err)
	}
	return all, nil
}

// commitRead makes the servers commit a write that changes nothing: a transaction of one
// check. Later reads of this session are at least as new, because a session never goes
// back in time. A refused transaction is committed too, so a missing znode or permission
// is no error.
func commitRead(ctx context.Context, z *zk.Client, path string) error {
	_, err := z.Multi(ctx, zk.CheckOp(path, -1))
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// printHeld prints the holder if the token holds. If it does not, the error of the command
// says so.
func printHeld(out io.Writer, name string, held []inspect.Entry) error {
	if len(held) == 0 {
		return nil
	}
	e := held[0]
	_, err := fmt.Fprintf(out, "%s is held with token %d by %s, whose entry is %s old\n", name, e.Token, cli.DescribeOwner(e.Entry), cli.ShortDuration(time.Since(e.Since)))
	return err
}
