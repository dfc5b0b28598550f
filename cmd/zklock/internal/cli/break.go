package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/internal/takeaway"
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

// breakFlags are those of break.
type breakFlags struct {
	readFlags
	token int64
	yes   bool
}

// breakCommand is zklock break.
func (a *app) breakCommand() *cobra.Command {
	var f breakFlags
	c := &cobra.Command{
		Use:     "break LOCK --token T",
		Short:   "Take a lock away from its holder",
		Long:    breakHelp,
		Example: breakExample,
		Args:    exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			ask := newAsker(f.yes)
			switch {
			case !c.Flags().Changed("token"):
				return usage("give --token, the fencing token of the hold that you mean: zklock show %s tells it", args[0])
			case f.token <= 0:
				return usage("--token is %d: tokens are above 0; zklock show %s tells the holder's", f.token, args[0])
			}
			if err := ask.check(); err != nil {
				return err
			}
			return a.lookAt(c, &f.readFlags, args[0], func(ctx context.Context, l *oneLock) error {
				return a.breakLock(ctx, l, f.token, ask)
			})
		},
	}
	a.lookFlags(c, &f.readFlags)
	c.Flags().Int64Var(&f.token, "token", 0, "fencing token `T` of the hold to break; required")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	_ = c.RegisterFlagCompletionFunc("token", a.completeTokens) // the flag is there
	return c
}

// loot is what break prints as JSON.
type loot struct {
	Path   string             `json:"path"`
	Token  int64              `json:"token"`
	Broken []survey.EntryView `json:"broken"`
}

// breakLock looks, asks, and takes the lock away.
func (a *app) breakLock(ctx context.Context, l *oneLock, token int64, ask asker) error {
	s, err := a.set.look(ctx, l)
	if err != nil {
		return err
	}
	if err := s.Certain(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	victim, err := heldBy(s, l.name, token)
	if err != nil {
		return err
	}
	about := victim[0]
	if err := ask.sure(fmt.Sprintf("%s is held by %s, which came %s ago.\nTake it away, on %s?", l.name, described(about.Entry), span.Short(time.Since(about.Since)), a.set.where())); err != nil {
		return err
	}
	// The time runs anew: somebody may have thought for long.
	limited, cancel := a.set.bounded(ctx)
	defer cancel()
	broken, err := take(limited, l.z, s, token)
	if errors.Is(err, takeaway.ErrOther) {
		return &exitError{exitNo, fmt.Errorf("%s: %w", l.name, err)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	return l.out.write(os.Stdout, shown{
		table: func(out io.Writer) error { return printBroken(out, l.name, broken[0]) },
		names: func() []string { return nodes(broken) },
		data:  func() []any { return []any{loot{l.path, token, survey.EntryViews(broken)}} },
	})
}

// take takes the lock away and returns the entries that are gone.
func take(ctx context.Context, z *zk.Client, s *survey.Lock, token int64) ([]survey.Entry, error) {
	entries := make([]zklock.Entry, len(s.Entries))
	for i, e := range s.Entries {
		entries[i] = e.Entry
	}
	gone, err := takeaway.Break(ctx, z, entries, token)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(s.Holders(), func(e survey.Entry) bool {
		return !slices.ContainsFunc(gone, func(g zklock.Entry) bool { return g.Node == e.Node })
	}), nil
}

// look reads a lock.
func (s *settings) look(ctx context.Context, l *oneLock) (*survey.Lock, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return l.r.Look(ctx, l.path)
}

// heldBy returns the entries of a lock that hold with the token, or says who has it
// instead.
func heldBy(s *survey.Lock, name string, token int64) ([]survey.Entry, error) {
	var held []survey.Entry
	for _, e := range s.Holders() {
		if e.Token == token {
			held = append(held, e)
		}
	}
	if len(held) > 0 {
		return held, nil
	}
	for _, e := range s.Contenders() {
		if e.Token == token {
			return nil, &exitError{exitNo, fmt.Errorf("%s waits for %s with token %d, and holds nothing", described(e.Entry), name, token)}
		}
	}
	return nil, &exitError{exitNo, fmt.Errorf("nobody holds %s with token %d: %s", name, token, whoElse(s))}
}

// whoElse says who holds, with the tokens.
func whoElse(s *survey.Lock) string {
	first := survey.Once(s.Holders())
	if len(first) == 0 {
		return "it is free"
	}
	text := fmt.Sprintf("%s holds it with token %d", described(first[0].Entry), first[0].Token)
	if n := len(first) - 1; n > 0 {
		text += ", and " + count(n, "other") + " beside"
	}
	return text
}

// described names an entry's maker and what it runs.
func described(e zklock.Entry) string {
	if e.Owner.Command == "" {
		return who(e)
	}
	return who(e) + " (" + command(e) + ")"
}

// printBroken tells what was done, and what it does not do.
func printBroken(out io.Writer, name string, e survey.Entry) error {
	learns := "it learns of that as soon as the servers reach it"
	if e.Recipe.Library != "zklock" {
		learns = "it goes on as if it held the lock: its library does not look"
	}
	_, err := fmt.Fprintf(out, "took %s from %s, token %d; %s\n", name, described(e.Entry), e.Token, learns)
	return err
}

// completeTokens completes a holder's token, with who that is.
func (a *app) completeTokens(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	z, r, err := a.forCompletion(ctx, c)
	if err != nil {
		return nil, directive
	}
	defer z.Close()
	defer r.Close()
	l, err := r.Look(ctx, args[0])
	if err != nil {
		return nil, directive
	}
	var tokens []cobra.Completion
	seen := map[int64]bool{} // those of one transaction have one token
	for _, e := range survey.Once(l.Holders()) {
		if !seen[e.Token] {
			seen[e.Token] = true
			tokens = append(tokens, annotated(strconv.FormatInt(e.Token, 10), who(e.Entry)+" "+command(e.Entry)))
		}
	}
	return tokens, directive
}
