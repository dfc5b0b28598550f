package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
)

const revokeHelp = `Revoke asks whoever holds LOCK to give it back, and prints whom it asked. It is a
wish: zklock run tells its user, or ends the command if it was given --on-revoke
term; Go programs see it at Hold.Revoked, and Curator's if they made their mutex
revocable. Nothing is taken away, and those who wait are not asked.

It exits 0 when all holders were asked, or nobody holds, and 125 when that could
not be done; whom it had asked by then it has printed.`

const revokeExample = `  zklock revoke deploy
  zklock revoke index && zklock run -w 60 index -- ./rebuild`

// revokeCommand is zklock revoke.
func (a *app) revokeCommand() *cobra.Command {
	return a.lookCommand(&cobra.Command{
		Use:     "revoke LOCK",
		Short:   "Ask the holders of a lock to give it back",
		Long:    revokeHelp,
		Example: revokeExample,
	}, "paths of the znodes of those who were asked", a.revoke)
}

// revoke asks, and prints whom.
func (a *app) revoke(ctx context.Context, l *oneLock) error {
	ctx, cancel := a.set.bounded(ctx)
	defer cancel()
	s, c, err := lookFor(ctx, l.z, l.own, l.plain, l.layout, l.path)
	if err != nil {
		return err
	}
	// Whom it had asked when it failed is printed as well: they may be giving the
	// lock back by now.
	asked, failed := s.revoke(ctx, c, l.plain)
	err = l.out.write(os.Stdout, shown{
		table: func(out io.Writer) error { return printAsked(out, l.name, asked, failed == nil, time.Now()) },
		names: func() []string { return (&survey{entries: asked}).nodes() },
		data:  func() []any { return []any{wish{l.path, entryViews(asked)}} },
	})
	if failed != nil {
		return failed
	}
	return err
}

// revoke asks the holders of a lock, of whatever kind. A semaphore is asked for by
// plain, a client of no special layout: some layouts have none, and the one that
// stands in the environment need not be this lock's.
func (s *survey) revoke(ctx context.Context, c, plain *zklock.Client) (asked []zklock.Entry, err error) {
	// A path may have a queue besides: a warning of show's, but its holders hold.
	locks := []*zklock.Lock{c.Mutex(s.path)}
	switch {
	case s.shape == shapeNode:
		locks[0] = c.NodeLock(s.path)
	case s.shape == shapeSemaphore:
		// All permits that exist may be held where nobody wrote how many there are.
		// And what somebody wrote there may be no number of permits at all.
		n := min(max(s.permits, len(s.holders()), 1), maxCount)
		locks = append(locks, plain.Semaphore(s.path, n))
	}
	for _, l := range locks {
		more, err := l.Revoke(ctx)
		asked = append(asked, more...)
		if err != nil {
			return asked, err
		}
	}
	return asked, nil
}

// wish is what revoke prints as JSON.
type wish struct {
	Path  string      `json:"path"`
	Asked []entryView `json:"asked"`
}

// printAsked writes one line for each holder that was asked.
func printAsked(out io.Writer, name string, asked []zklock.Entry, all bool, now time.Time) error {
	if len(asked) == 0 && all {
		_, err := fmt.Fprintf(out, "%s is free: nobody to ask\n", name)
		return err
	}
	for _, e := range once(asked) {
		text := "asked " + who(e)
		if e.Owner.Command != "" {
			text += " (" + command(e) + ")"
		}
		// The servers know when an entry was made, and nobody when it was granted.
		text += ", which came " + span.Short(now.Sub(e.Since)) + " ago"
		switch recipeOf(e).Library {
		case libKazoo:
			text += "; kazoo does not look for such wishes"
		case libCurator, libGo:
			text += "; it sees the wish only if it is Curator's and made revocable"
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return nil
}
