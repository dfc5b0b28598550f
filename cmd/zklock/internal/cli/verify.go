package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/internal/takeaway"
	"github.com/zklock/zklock/zk"
)

const verifyHelp = `Verify checks whether LOCK is held with the fencing TOKEN, which zklock run
passes to its command as $ZKLOCK_TOKEN. It makes the servers commit a write
that changes nothing before it reads, so a server that lags behind cannot give
a wrong answer.

What it proves: at one moment between the question and the answer, an entry with
this token held the lock, and no client that this entry excludes held it.

What it does not prove:
  - that the lock is still held. It can be lost right after the answer. A
    resource that rejects old tokens is safe; a script that verifies and
    then acts only makes the gap smaller.
  - that the caller who presents a token holds the lock. A token is not a
    secret: every client that can read the locks sees it. Authenticate
    callers by other means.
  - that the entry is genuine. Every client that can write below LOCK can
    create entries, with any owner. For a downgraded lock, the token of
    the former exclusive lock is what the new entry claims. Use ACLs to
    keep other clients out: see zklock doctor.

With --watch it verifies the token every two seconds, until the token no longer
holds, the check fails, or it is interrupted. Each check costs one such write; a
node lock and a custom layout need reads too.

With -o name it prints the lock's path if the token holds, otherwise nothing.

Exit codes:
  0    the token holds
  1    the token does not hold, or with --watch, no longer holds
  125  the check failed`

const verifyExample = `  zklock verify deploy 4294967321
  zklock verify deploy $ZKLOCK_TOKEN && ./publish    # in zklock run
  zklock verify -o json deploy 4294967321 | jq .held
  zklock verify --watch deploy 4294967321 || ./take-over`

// verifyCommand is zklock verify.
func (a *app) verifyCommand() *cobra.Command {
	var f readFlags
	c := &cobra.Command{
		Use:     "verify LOCK TOKEN",
		Short:   "Verify that a fencing token still holds its lock",
		Long:    verifyHelp,
		Example: verifyExample,
		Args:    exactly(2, "a lock and a token"),
		RunE: func(c *cobra.Command, args []string) error {
			token, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || token <= 0 {
				return usage("%q is no token: give the number that zklock run has in ZKLOCK_TOKEN, zklock lock prints, and zklock show tells", args[1])
			}
			return a.lookAt(c, &f, args[0], func(ctx context.Context, l *oneLock) error {
				if f.watch {
					return a.watchVerdict(l, token)
				}
				_, err := a.verify(ctx, l, token)
				return err
			})
		},
	}
	a.lookFlags(c, &f)
	c.Flags().BoolVar(&f.watch, "watch", false, "repeat until the token no longer holds")
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

// verify asks, says what came of it, and returns the entries that hold with the token.
func (a *app) verify(ctx context.Context, l *oneLock, token int64) ([]survey.Entry, error) {
	limited, cancel := a.set.bounded(ctx)
	defer cancel()
	if err := agree(limited, l.z, l.path); err != nil {
		return nil, fmt.Errorf("%s cannot be verified: %w", l.name, err)
	}
	s, err := a.set.look(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be verified: %w", l.name, err)
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
		return nil, err
	}
	if no != nil && l.out.form != outTable {
		return nil, &exitError{Code: exitNo} // the output has said why
	}
	return held, no
}

// verifyEvery is how often --watch asks.
const verifyEvery = 2 * time.Second

// watchVerdict asks until the token does not hold, and says so. As long as the entries
// that hold with it are there it holds: nobody comes before them.
func (a *app) watchVerdict(l *oneLock, token int64) error {
	signals := endSignals()
	defer signal.Stop(signals)
	ctx, stop := interruptible(signals, nil)
	defer stop()
	tick := time.NewTicker(verifyEvery)
	defer tick.Stop()
	for {
		held, err := a.verify(ctx, l, token)
		for err == nil {
			select {
			case <-ctx.Done():
				return interrupted(ctx, ctx.Err())
			case <-tick.C:
			}
			var there bool
			if there, err = a.set.there(ctx, l, held); err == nil && !there {
				break // it may be a writer's that became a reader's
			}
		}
		if err != nil {
			return interrupted(ctx, err)
		}
	}
}

// there asks a quorum whether all of these entries are there.
func (s *settings) there(ctx context.Context, l *oneLock, held []survey.Entry) (bool, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	entries := make([]zklock.Entry, len(held))
	for i, e := range held {
		entries[i] = e.Entry
	}
	there, err := takeaway.There(ctx, l.z, entries)
	if err != nil {
		return false, fmt.Errorf("%s cannot be verified: %w", l.name, err)
	}
	return there, nil
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
