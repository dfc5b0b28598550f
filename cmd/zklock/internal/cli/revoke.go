package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/survey"
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

// revokeCommand is zklock revoke.
func (a *app) revokeCommand() *cobra.Command {
	var f readFlags
	var token int64
	c := &cobra.Command{
		Use:     "revoke LOCK",
		Short:   "Ask the holders of a lock to release it",
		Long:    revokeHelp,
		Example: revokeExample,
		Args:    exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("token") && token <= 0 {
				return usage("--token is %d: tokens are above 0; zklock show %s tells the holders'", token, args[0])
			}
			return a.lookAt(c, &f, args[0], func(ctx context.Context, l *oneLock) error { return a.revoke(ctx, l, token) })
		},
	}
	a.lookFlags(c, &f)
	c.Flags().Int64Var(&token, "token", 0, "ask only the holder with fencing token `T`")
	_ = c.RegisterFlagCompletionFunc("token", a.completeTokens) // the flag is there
	return c
}

// revoke asks, and prints whom.
func (a *app) revoke(ctx context.Context, l *oneLock, token int64) error {
	ctx, cancel := a.set.bounded(ctx)
	defer cancel()
	s, err := l.r.Look(ctx, l.path)
	if err != nil {
		return err
	}
	if err := s.Certain(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	// Whom it had asked when it failed is printed as well: they may be giving the
	// lock back by now.
	asked, failed := l.r.Revoke(ctx, s, token)
	if token != 0 && failed == nil && len(asked) == 0 {
		if _, failed = heldBy(s, l.name, token); failed == nil { // when it was looked at
			failed = &exitError{exitNo, fmt.Errorf("nobody holds %s with token %d any longer", l.name, token)}
		}
	}
	err = l.out.write(os.Stdout, shown{
		table: func(out io.Writer) error { return printAsked(out, l.name, asked, failed == nil, time.Now()) },
		names: func() []string { return nodes(asked) },
		data:  func() []any { return []any{wish{l.path, survey.EntryViews(asked)}} },
	})
	if failed != nil {
		return failed
	}
	return err
}

// wish is what revoke prints as JSON.
type wish struct {
	Path  string             `json:"path"`
	Asked []survey.EntryView `json:"asked"`
}

// printAsked writes one line for each holder that was asked.
func printAsked(out io.Writer, name string, asked []survey.Entry, all bool, now time.Time) error {
	if len(asked) == 0 && all {
		_, err := fmt.Fprintf(out, "%s is free: nobody to ask\n", name)
		return err
	}
	for _, e := range survey.Once(asked) {
		text := "asked " + who(e.Entry)
		if e.Owner.Command != "" {
			text += " (" + command(e.Entry) + ")"
		}
		// The servers know when an entry was made, and nobody when it was granted.
		text += ", which came " + span.Short(now.Sub(e.Since)) + " ago"
		switch e.Recipe.Library {
		case "kazoo":
			text += "; kazoo does not look for such wishes"
		case "ZooKeeper":
			text += "; WriteLock does not look for release requests"
		case "Curator", "go-zookeeper":
			text += "; it sees the wish only if it is Curator's and made revocable"
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return nil
}
