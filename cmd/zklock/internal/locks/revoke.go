package locks

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

const revokeHelp = `Revoke sends a release request to the holders of LOCK and prints them. It asks
all holders of a shared lock or a semaphore; with --token, only the holder with
that fencing token (zklock show). It does not ask for confirmation.

The request takes nothing away, and waiters do not get it. zklock run prints a
notice, or with --on-revoke term ends its command. Go programs see the request
at Hold.Revoked, and Curator programs see it if they made their mutex
revocable.

With -o name it prints the paths of the holders' znodes.

Exit codes:
  0    all these holders were asked, or the lock has no holder
  1    no holder has that token
  125  a request failed; the holders asked before that are printed`

const revokeExample = `  zklock revoke deploy
  zklock revoke catalog --token 4294967321     # one of several readers
  zklock revoke index && zklock run -w 60 index -- ./rebuild`

// Revoke returns zklock revoke.
func Revoke(a *cli.App) *cobra.Command {
	var f readFlags
	var token int64
	c := &cobra.Command{
		Use:     "revoke LOCK",
		Short:   "Ask the holders of a lock to release it",
		Long:    revokeHelp,
		Example: revokeExample,
		Args:    cli.Exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("token") && token <= 0 {
				return cli.UsageError("--token is %d: tokens are above 0; zklock show %s prints the tokens of the holders", token, legible.Word(args[0]))
			}
			return withLock(a, c, &f, args[0], func(ctx context.Context, l *oneLock) error { return revoke(a, ctx, l, token) })
		},
	}
	lockReadFlags(a, c, &f)
	c.Flags().Int64Var(&token, "token", 0, "ask only the holder with fencing token `T`")
	_ = c.RegisterFlagCompletionFunc("token", a.CompleteTokens) // the flag exists
	return c
}

// revoke sends the release request and prints the holders that got it.
func revoke(a *cli.App, ctx context.Context, l *oneLock, token int64) error {
	ctx, cancel := a.Settings.ConnectContext(ctx)
	defer cancel()
	s, err := l.r.Read(ctx, l.path)
	if err != nil {
		return err
	}
	if err := s.CheckLayout(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	// If Revoke fails, the holders that it asked before are printed too, because they may
	// release the lock.
	asked, failed := l.r.Revoke(ctx, s, token)
	if token != 0 && failed == nil && len(asked) == 0 {
		if _, failed = entriesWithToken(s, l.name, token); failed == nil { // it held when s was read
			failed = &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("no client holds %s with token %d any longer", l.name, token)}
		}
	}
	err = l.out.Write(os.Stdout, cli.Result{
		Table: func(out io.Writer) error { return printAsked(out, l.name, asked, failed == nil, time.Now()) },
		Names: func() []string { return nodes(asked) },
		Data:  func() []any { return []any{revokeView{l.path, inspect.EntryViews(asked)}} },
	})
	if failed != nil {
		return failed
	}
	return err
}

// revokeView is the output of revoke as JSON.
type revokeView struct {
	Path  string              `json:"path"`
	Asked []inspect.EntryView `json:"asked"`
}

// printAsked prints one line for each holder that was asked.
func printAsked(out io.Writer, name string, asked []inspect.Entry, all bool, now time.Time) error {
	if len(asked) == 0 && all {
		_, err := fmt.Fprintf(out, "%s is free\n", name)
		return err
	}
	for _, e := range inspect.FirstPerAcquire(asked) {
		text := "asked " + cli.OwnerName(e.Entry)
		if e.Owner.Command != "" {
			text += " (" + cli.OwnerCommand(e.Entry) + ")"
		}
		// The servers record when an entry was created, but not when it was granted.
		text += ", whose entry is " + cli.ShortDuration(now.Sub(e.Since)) + " old"
		switch e.Recipe.Library {
		case "kazoo":
			text += "; kazoo does not look for release requests"
		case "ZooKeeper":
			text += "; WriteLock does not look for release requests"
		case "Curator", "go-zookeeper":
			text += "; the holder sees the request only if it is a Curator mutex that was made revocable"
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return nil
}
