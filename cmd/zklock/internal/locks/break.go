package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

const breakHelp = `Break takes LOCK from the holder with the fencing token of --token (zklock
show). If another client holds the lock by then, nothing changes. It asks for
confirmation first.

The next waiter gets the lock at once, but the former holder is not stopped.
zklock run kills its command as soon as it learns of the loss, which is at once
if its connection works. Go programs see the loss at Hold.Done. Programs with
Curator, kazoo, or go-zookeeper do not notice it. End the holder first if you
can, or send a release request (zklock revoke), and let the resource reject old
tokens.

With -o name it prints the paths of the deleted znodes.

Exit codes:
  0    the lock was taken away
  1    no holder has that token, or you answered no
  125  the lock could not be taken away`

const breakExample = `  zklock break deploy --token 4294967321
  zklock break deploy --token 4294967321 --yes -o json
  zklock show deploy && zklock break deploy --token 4294967321`

// breakFlags are the flags of zklock break.
type breakFlags struct {
	readFlags
	token int64
	yes   bool
}

// Break returns zklock break.
func Break(a *cli.App) *cobra.Command {
	var f breakFlags
	c := &cobra.Command{
		Use:     "break LOCK --token T",
		Short:   "Take a lock away from its holder",
		Long:    breakHelp,
		Example: breakExample,
		Args:    cli.Exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			ask := cli.NewConfirmer(f.yes)
			switch {
			case !c.Flags().Changed("token"):
				return cli.UsageError("give --token, the fencing token of the hold that you mean: zklock show %s prints it", legible.Word(args[0]))
			case f.token <= 0:
				return cli.UsageError("--token is %d: tokens are above 0; zklock show %s prints the token of the holder", f.token, legible.Word(args[0]))
			}
			if err := ask.Check(); err != nil {
				return err
			}
			return withLock(a, c, &f.readFlags, args[0], func(ctx context.Context, l *oneLock) error {
				return breakLock(a, ctx, l, f.token, ask)
			})
		},
	}
	lockReadFlags(a, c, &f.readFlags)
	c.Flags().Int64Var(&f.token, "token", 0, "fencing token `T` of the hold to break; required")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	_ = c.RegisterFlagCompletionFunc("token", a.CompleteTokens) // the flag exists
	return c
}

// breakView is the output of break as JSON.
type breakView struct {
	Path   string              `json:"path"`
	Token  int64               `json:"token,string"`
	Broken []inspect.EntryView `json:"broken"`
}

// breakLock finds the hold, asks for confirmation, and breaks the hold.
func breakLock(a *cli.App, ctx context.Context, l *oneLock, token int64, ask cli.Confirmer) error {
	s, err := readLock(&a.Settings, ctx, l)
	if err != nil {
		return err
	}
	if err := s.CheckToken(token); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	held, err := entriesWithToken(s, l.name, token)
	if err != nil {
		return err
	}
	first := held[0]
	if err := ask.Confirm(fmt.Sprintf("%s is held by %s, whose entry is %s old.\nBreak the lock, on %s?", l.name, cli.DescribeOwner(first.Entry), cli.ShortDuration(time.Since(first.Since)), a.Settings.ServersText())); err != nil {
		return err
	}
	// A new time limit, because the confirmation can take long.
	limited, cancel := a.Settings.ConnectContext(ctx)
	defer cancel()
	line := a.Settings.Progress("breaking %s", l.name)
	broken, err := deleteEntries(limited, l.z, s, token)
	line.Stop()
	if errors.Is(err, inspect.ErrNotHeld) {
		return &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("%s: %w", l.name, err)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	return l.out.Write(os.Stdout, cli.Result{
		Table: func(out io.Writer) error { return printBroken(out, l.name, broken[0]) },
		Names: func() []string { return nodes(broken) },
		Data:  func() []any { return []any{breakView{l.path, token, inspect.EntryViews(broken)}} },
	})
}

// deleteEntries breaks the hold and returns its entries, which are gone.
func deleteEntries(ctx context.Context, z *zk.Client, s *inspect.Lock, token int64) ([]inspect.Entry, error) {
	entries := make([]zklock.Entry, len(s.Entries))
	for i, e := range s.Entries {
		entries[i] = e.Entry
	}
	gone, err := inspect.Break(ctx, z, entries, token)
	if err != nil {
		return nil, err
	}
	broken := slices.DeleteFunc(s.Holders(), func(e inspect.Entry) bool {
		return !slices.ContainsFunc(gone, func(g zklock.Entry) bool { return g.Node == e.Node })
	})
	setToken(broken, token)
	return broken, nil
}

// readLock reads a lock.
func readLock(s *cli.Settings, ctx context.Context, l *oneLock) (*inspect.Lock, error) {
	ctx, cancel := s.ConnectContext(ctx)
	defer cancel()
	defer s.Progress("reading %s", l.name).Stop()
	return l.r.Read(ctx, l.path)
}

// entriesWithToken returns the entries that hold the lock with the token. If there are
// none, its error names the holder.
func entriesWithToken(s *inspect.Lock, name string, token int64) ([]inspect.Entry, error) {
	if held := s.HoldersWith(token); len(held) > 0 {
		setToken(held, token)
		return held, nil
	}
	for _, e := range s.Contenders() {
		if e.Token == token {
			return nil, &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("%s waits for %s with token %d and does not hold it", cli.DescribeOwner(e.Entry), name, token)}
		}
	}
	return nil, &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("no client holds %s with token %d: %s", name, token, describeHolders(s))}
}

// setToken sets the token by which the entries were found, because their data can claim another one.
func setToken(entries []inspect.Entry, token int64) {
	for i := range entries {
		entries[i].Token = token
	}
}

// describeHolders names the holders and the token of the first one.
func describeHolders(s *inspect.Lock) string {
	first := inspect.FirstPerAcquire(s.Holders())
	if len(first) == 0 {
		return "it is free"
	}
	text := fmt.Sprintf("%s holds it with token %d", cli.DescribeOwner(first[0].Entry), first[0].Token)
	if first[0].Token == 0 { // it could not be read
		text = "a client whose entry may not be read holds it"
	}
	if n := len(first) - 1; n > 0 {
		text += ", and so do " + cli.Count(n, "other client")
	}
	return text
}

// printBroken prints which hold was broken, and whether its holder notices that.
func printBroken(out io.Writer, name string, e inspect.Entry) error {
	notices := "the holder notices it as soon as a server answers it"
	if e.Recipe.Library != "zklock" {
		notices = "the holder continues, because its library does not check"
	}
	_, err := fmt.Fprintf(out, "broke %s, held by %s with token %d; %s\n", name, cli.DescribeOwner(e.Entry), e.Token, notices)
	return err
}
