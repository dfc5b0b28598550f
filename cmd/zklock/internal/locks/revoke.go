package locks

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

const revokeHelp = `Revoke sends a release request to the holders of LOCK and prints them. It asks
all holders of a shared lock or a semaphore; with --token, only the holder with
that fencing token (zklock show). It does not ask for confirmation.

The request does not end a hold, and waiters do not get it. zklock run prints a
notice, or with --on-revoke term ends its command. Go programs see the request
at Hold.Revoked, and Curator programs see it if they made their mutex
revocable.

Holders of libraries that ignore requests are not asked, and their znodes keep
their data: kazoo, go-zookeeper, ZooKeeper's WriteLock, and Curator's
LeaderLatch and semaphores. zklock break takes a lock from such a holder.

With -o name it prints the paths of the znodes of the holders that were asked.

Exit codes:
  0    all these holders were asked, or the lock has no holder
  1    no holder has that token, or a holder ignores requests
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
	s, err := readLock(&a.Settings, ctx, l)
	if err != nil {
		return err
	}
	if err := s.CheckLayout(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	// If Revoke fails, the holders that it asked before are printed too, because they may
	// release the lock.
	line := a.Settings.Progress("asking the holders of %s", l.name)
	asked, failed := l.r.Revoke(ctx, s, token)
	line.Stop()
	ignoring := notAsked(s, token, asked)
	if failed == nil && len(ignoring) > 0 {
		failed = ignoreError(l.name, ignoring)
	}
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

// notAsked returns the holders that Revoke did not ask because their library ignores
// requests, of those with the token if it is not 0.
func notAsked(s *inspect.Lock, token int64, asked []inspect.Entry) []inspect.Entry {
	told := map[string]bool{}
	for _, e := range asked {
		told[e.Node] = true
	}
	var all []inspect.Entry
	for _, e := range s.Holders() {
		if !told[e.Node] && (token == 0 || e.Token == token) && e.IgnoresRequests() {
			all = append(all, e)
		}
	}
	return inspect.FirstPerAcquire(all)
}

// ignoreError returns the error for holders that ignore requests.
func ignoreError(name string, ignoring []inspect.Entry) error {
	var texts []string
	for _, e := range ignoring {
		by := "its library"
		if e.Recipe.Library != "" {
			by = e.Recipe.String()
		}
		texts = append(texts, fmt.Sprintf("%s (%s ignores release requests)", cli.OwnerName(e.Entry), by))
	}
	return &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("%s: did not ask %s; zklock break takes the lock away", name, strings.Join(texts, ", "))}
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
		if e.Recipe.Library == "Curator" {
			text += "; the holder sees the request only if it is a Curator mutex that was made revocable"
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return nil
}
