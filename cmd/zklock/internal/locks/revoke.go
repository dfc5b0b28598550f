package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

const revokeHelp = `Revoke sends a release request to the holders of LOCK and prints them. It asks
all holders of a shared lock or a semaphore; with --token, only the holder with
that fencing token (zklock show). It does not ask for confirmation.

The request does not end a hold, and waiters do not get it. zklock run prints a
notice, or with --on-revoke term ends its command. Go programs see the request
through Hold.Revoked. Curator programs see it if they made their mutex
revocable.

Some libraries ignore requests: kazoo, go-zookeeper, ZooKeeper's WriteLock, and
Curator's LeaderLatch and semaphores. Revoke does not ask their holders, and
does not change their znodes. zklock break takes a lock from such a holder.

With --wait, revoke waits until the holders that it asked have released the
lock. With --then-break, it then breaks those of their holds that still exist.
It identifies them by their entries, or after a downgrade by their sessions and
places in the queue, so it breaks a later hold only if that has the same entry,
as with LocalHandoff in Go. As with zklock break, the holder's process is not
stopped. A hold whose entry belongs to no session or may not be read stays.

The holder sees --reason, and the host, process, and user of this command, but
must not rely on them: every client that can write below LOCK can write a
request. A request to Curator has no reason.

With -o name it prints the paths of the znodes of the holders that it asked.
With --wait, -o json prints a second object with the holds that were released,
were broken, or are still held.

Exit codes:
  0    all these holders were asked, and with --wait, their holds have
       ended; or the lock has no holder
  1    no holder has that token, a holder ignores requests, you answered
       no, or with --wait, a holder did not release the lock in time
  125  a request failed, or a hold could not be broken; the holders asked
       before that are printed`

const revokeExample = `  zklock revoke deploy
  zklock revoke catalog --token 4294967321     # one of several readers
  zklock revoke index && zklock run -w 60 index -- ./rebuild
  zklock revoke deploy --wait 30s --then-break --reason backup`

// revokeFlags are the flags of zklock revoke.
type revokeFlags struct {
	readFlags
	token     int64
	reason    string
	wait      cli.Duration
	thenBreak bool
	yes       bool
}

// check returns an error if the flags are invalid.
func (f *revokeFlags) check(set *pflag.FlagSet, name string) error {
	switch {
	case set.Changed("token") && f.token <= 0:
		return cli.UsageError("--token is %d: tokens are above 0; zklock show %s prints the tokens of the holders", f.token, legible.Word(name))
	case len(f.reason) > zklock.MaxReason || !utf8.ValidString(f.reason):
		return cli.UsageError("--reason has %d bytes: give at most %d bytes of UTF-8", len(f.reason), zklock.MaxReason)
	case set.Changed("wait") && f.wait.D <= 0:
		return cli.UsageError("--wait is %v: give a time above 0", f.wait.D)
	case f.thenBreak && f.wait.D == 0:
		return cli.UsageError("--then-break breaks the lock after --wait: give --wait, or use zklock break")
	case f.thenBreak:
		return cli.NewConfirmer(f.yes).Check()
	case f.yes:
		return cli.UsageError("--yes applies to --then-break: give both")
	}
	return nil
}

// Revoke returns zklock revoke.
func Revoke(a *cli.App) *cobra.Command {
	var f revokeFlags
	c := &cobra.Command{
		Use:     "revoke LOCK",
		Short:   "Ask the holders of a lock to release it",
		Long:    revokeHelp,
		Example: revokeExample,
		Args:    cli.Exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c.Flags(), args[0]); err != nil {
				return err
			}
			return withLock(a, c, &f.readFlags, args[0], func(ctx context.Context, l *oneLock) error { return revoke(a, ctx, l, &f) })
		},
	}
	lockReadFlags(a, c, &f.readFlags)
	c.Flags().Int64Var(&f.token, "token", 0, "ask only the holder with fencing token `T`")
	c.Flags().StringVar(&f.reason, "reason", "", "`text` for the holder: why it should release")
	c.Flags().Var(&f.wait, "wait", "wait this long for the release")
	c.Flags().BoolVar(&f.thenBreak, "then-break", false, "break the lock if it is not released in time")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "for --then-break: do not ask for confirmation")
	_ = c.RegisterFlagCompletionFunc("token", a.CompleteTokens) // the flag exists
	cli.CompleteNothing(c, "reason", "wait")
	return c
}

// revoke sends the release request and prints the holders that got it. With --wait, it
// then waits for their release.
func revoke(a *cli.App, ctx context.Context, l *oneLock, f *revokeFlags) error {
	s, err := readLock(&a.Settings, ctx, l)
	if err != nil {
		return err
	}
	if err := s.CheckToken(f.token); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	if f.thenBreak && len(s.Holders()) > 0 {
		question := fmt.Sprintf("%s.\nAsk for its release, and break the lock after %s, on %s?", describeHolders(s), cli.ShortDuration(f.wait.D), a.Settings.ServersText())
		if err := cli.NewConfirmer(f.yes).Confirm(question); err != nil {
			return err
		}
	}
	asked, err := requestRelease(a, ctx, l, s, f)
	if f.wait.D == 0 || len(asked) == 0 {
		return err
	}
	return errors.Join(err, awaitRelease(a, ctx, l, asked, f))
}

// requestRelease sends the request, and prints and returns the holders that got it.
func requestRelease(a *cli.App, ctx context.Context, l *oneLock, s *inspect.Lock, f *revokeFlags) ([]inspect.Entry, error) {
	ctx, cancel := a.Settings.ConnectContext(ctx)
	defer cancel()
	token := f.token
	// If Revoke fails, the holders that it asked before are printed too, because they may
	// release the lock.
	line := a.Settings.Progress("asking the holders of %s", l.name)
	asked, failed := l.r.RequestRelease(ctx, s, token, zklock.ReleaseRequest{By: cli.ProcessOwner(), Reason: f.reason})
	line.Stop()
	if token != 0 {
		setToken(asked, token)
	}
	ignoring := notAsked(s, token, asked)
	if failed == nil && len(ignoring) > 0 {
		failed = ignoreError(l.name, ignoring)
	}
	if token != 0 && failed == nil && len(asked) == 0 {
		if _, failed = entriesWithToken(s, l.name, token); failed == nil { // it held when s was read
			failed = &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("no client holds %s with token %d any longer", l.name, token)}
		}
	}
	err := l.out.Write(os.Stdout, cli.Result{
		Table: func(out io.Writer) error { return printAsked(out, l.name, asked, failed == nil, time.Now()) },
		Names: func() []string { return nodes(asked) },
		Data:  func() []any { return []any{revokeView{l.path, inspect.EntryViews(asked)}} },
	})
	if failed != nil {
		return asked, failed
	}
	return asked, err
}

// revokeView is the output of revoke as JSON.
type revokeView struct {
	Path  string              `json:"path"`
	Asked []inspect.EntryView `json:"asked"`
}

// notAsked returns the holders that Revoke did not ask because their library ignores
// requests, of those with the token if it is not 0.
func notAsked(s *inspect.Lock, token int64, asked []inspect.Entry) []inspect.Entry {
	told := map[string]bool{}
	for _, e := range asked {
		told[e.Node] = true
	}
	holders := s.Holders()
	if token != 0 {
		holders = s.HoldersWith(token)
	}
	var all []inspect.Entry
	for _, e := range holders {
		if !told[e.Node] && e.IgnoresRequests() {
			all = append(all, e)
		}
	}
	return inspect.FirstPerAcquire(all)
}

// ignoreError returns the error for holders that ignore requests.
func ignoreError(name string, ignoring []inspect.Entry) error {
	var texts []string
	do := "zklock break takes the lock away"
	for _, e := range ignoring {
		if e.Session == 0 { // break refuses it
			do = "delete " + legible.Path(e.Node) + " if its client no longer needs it: it belongs to no session"
		}
		by := "its library"
		if e.Recipe.Library != "" {
			by = e.Recipe.String()
		}
		texts = append(texts, fmt.Sprintf("%s (%s ignores release requests)", inspect.OwnerName(e.Entry), by))
	}
	return &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("%s: did not ask %s; %s", name, strings.Join(texts, ", "), do)}
}

// printAsked prints one line for each holder that was asked.
func printAsked(out io.Writer, name string, asked []inspect.Entry, all bool, now time.Time) error {
	if len(asked) == 0 && all {
		_, err := fmt.Fprintf(out, "%s is free\n", name)
		return err
	}
	for _, e := range inspect.FirstPerAcquire(asked) {
		// The servers record when an entry was created, but not when it was granted.
		text := "asked " + cli.DescribeOwner(e.Entry) + ", whose entry is " + cli.ShortDuration(now.Sub(e.Since)) + " old"
		if e.Recipe.Library == "Curator" {
			text += "; the holder sees the request only if it is a Curator mutex that was made revocable"
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return nil
}
