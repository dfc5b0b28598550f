package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/zk"
)

const verifyHelp = `Verify asks whether LOCK is held with the fencing TOKEN, as $ZKLOCK_TOKEN under
zklock run. The answer is of a moment between the question and the answer: it
makes the servers agree on a write first, so that none which lags behind is
believed. What it costs is that write, which changes nothing.

It says what was, not what will be: the lock may be lost a moment later. A
resource that refuses old tokens is safe; a script that verifies and then acts
has only made the gap small.

It exits 0 when the token holds, 1 when it does not, and 125 when no answer was
to be had.`

const verifyExample = `  zklock verify deploy 4294967321
  zklock run deploy -- sh -c './build && zklock verify deploy $ZKLOCK_TOKEN && ./publish'
  zklock verify -o json deploy 4294967321 | jq .held`

// verifyCommand is zklock verify.
func (a *app) verifyCommand() *cobra.Command {
	var f readFlags
	c := &cobra.Command{
		Use:     "verify LOCK TOKEN",
		Short:   "Ask whether a token still holds its lock",
		Long:    verifyHelp,
		Example: verifyExample,
		Args:    exactly(2, "a lock and a token"),
		RunE: func(c *cobra.Command, args []string) error {
			token, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || token <= 0 {
				return usage("%q is no token: give the number that zklock run has in ZKLOCK_TOKEN, zklock lock prints, and zklock show tells", args[1])
			}
			return a.lookAt(c, &f, args[0], func(ctx context.Context, l *oneLock) error { return a.verify(ctx, l, token) })
		},
	}
	a.lookFlags(c, &f, "the lock's path if the token holds, else nothing")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return a.completeTokens(c, args, begun)
		}
		return a.completeLocks(c, args, begun)
	}
	return c
}

// verdict is what verify prints as JSON.
type verdict struct {
	Path  string `json:"path"`
	Token int64  `json:"token"`
	Held  bool   `json:"held"`
	// Holders are the entries that hold with the token, or if there is none, those
	// that hold instead.
	Holders []survey.EntryView `json:"holders"`
}

// verify asks, and says what came of it.
func (a *app) verify(ctx context.Context, l *oneLock, token int64) error {
	limited, cancel := a.set.bounded(ctx)
	defer cancel()
	if err := agree(limited, l.z, l.path); err != nil {
		return fmt.Errorf("%s cannot be verified: %w", l.name, err)
	}
	s, err := a.set.look(ctx, l)
	if err != nil {
		return fmt.Errorf("%s cannot be verified: %w", l.name, err)
	}
	held, no := heldBy(s, l.name, token)
	holders := held
	if no != nil {
		holders = s.Holders()
	}
	err = l.out.write(os.Stdout, shown{
		table: func(out io.Writer) error { return printVerdict(out, l.name, held) },
		names: func() []string {
			if no != nil {
				return nil
			}
			return []string{l.path}
		},
		data: func() []any { return []any{verdict{l.path, token, no == nil, survey.EntryViews(holders)}} },
	})
	if err != nil {
		return err
	}
	if no != nil && l.out.form != outTable {
		return &exitError{Code: exitNo} // the output has said why
	}
	return no
}

// agree makes the servers agree on a write that changes nothing: a transaction of one
// check. What this session reads afterwards is at least as new, since ZooKeeper lets
// no session go back in time. That the znode is not there, or must not be checked, is
// agreed upon as well.
func agree(ctx context.Context, z *zk.Client, path string) error {
	_, err := z.Multi(ctx, zk.CheckOp(path, -1))
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// printVerdict says who holds, if that is the answer. That it is not goes to standard
// error, as what is wrong does.
func printVerdict(out io.Writer, name string, held []survey.Entry) error {
	if len(held) == 0 {
		return nil
	}
	e := held[0]
	_, err := fmt.Fprintf(out, "%s is held with token %d by %s, which came %s ago\n", name, e.Token, described(e.Entry), span.Short(time.Since(e.Since)))
	return err
}
