package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
)

// awaitView is the output of revoke --wait as JSON.
type awaitView struct {
	Path     string              `json:"path"`
	Released []inspect.EntryView `json:"released"`
	Broken   []inspect.EntryView `json:"broken"`
	Held     []inspect.EntryView `json:"held"`
}

// outcome is what became of the holds that were asked.
type outcome struct{ released, broken, held []inspect.Entry }

// awaitRelease waits until the holds that were asked are released, breaks the others if
// --then-break is given, and prints the outcome.
func awaitRelease(a *cli.App, ctx context.Context, l *oneLock, asked []inspect.Entry, f *revokeFlags) error {
	limited, cancel := context.WithTimeout(ctx, f.wait.D)
	defer cancel()
	line := a.Settings.Progress("waiting for the release of %s", l.name)
	err := l.r.AwaitRelease(limited, l.path, asked)
	line.Stop()
	// The holds that are left are read again, because the last read may be old.
	s, readErr := readLock(&a.Settings, ctx, l)
	if readErr != nil {
		return fmt.Errorf("%s: %w", l.name, errors.Join(readErr, err))
	}
	var result outcome
	result.held, result.released = s.StillHeld(asked)
	var failed error
	if f.thenBreak {
		failed = breakAsked(a, ctx, l, s, &result)
	}
	err = l.out.Write(os.Stdout, cli.Result{
		Table: func(out io.Writer) error { return result.print(out, l.name) },
		Names: func() []string { return nil }, // the holders that were asked are printed already
		Data: func() []any {
			return []any{awaitView{l.path, inspect.EntryViews(result.released), inspect.EntryViews(result.broken), inspect.EntryViews(result.held)}}
		},
	})
	if failed == nil && len(result.held) > 0 {
		failed = &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("%s was not released within %s", l.name, cli.ExactDuration(f.wait.D))}
	}
	return errors.Join(failed, err)
}

// breakAsked breaks the holds that are left, and no other hold with their tokens, which any data
// can claim. A hold that it cannot break stays in result.held, also one whose entry exists but does
// not count as a holder, see [inspect.Lock.StillHeld]. The error says why it could not break holds.
func breakAsked(a *cli.App, ctx context.Context, l *oneLock, s *inspect.Lock, result *outcome) error {
	ctx, cancel := a.Settings.ConnectContext(ctx)
	defer cancel()
	var failed []error
	left := result.held
	result.held = nil
	tried := map[int64]error{} // by the transaction that created the entries of a hold
	for _, e := range left {
		hold := *s
		hold.Entries = s.OfHold(e)
		id := slices.MaxFunc(hold.Entries, byTransaction).Czxid
		err, done := tried[id]
		if !done || id == 0 {
			err = breakHold(ctx, l, &hold, id)
			tried[id] = err
			if err != nil && err != errReleased && err != errNoHolder {
				failed = append(failed, err)
			}
		}
		switch err {
		case nil:
			result.broken = append(result.broken, e)
		case errReleased:
			result.released = append(result.released, e)
		default:
			result.held = append(result.held, e)
		}
	}
	return errors.Join(failed...)
}

// byTransaction orders entries by the transactions that created them; unreadable ones come first.
func byTransaction(a, b inspect.Entry) int { return cmp.Compare(a.Czxid, b.Czxid) }

// Results of breakHold that are no errors of the command.
var (
	errReleased = errors.New("the hold was released since the read")
	errNoHolder = errors.New("no entry of the hold counts as a holder")
)

// breakHold breaks the hold with these entries, which a transaction created. If id is 0, none of
// them may be read.
func breakHold(ctx context.Context, l *oneLock, hold *inspect.Lock, id int64) error {
	first := hold.Entries[0]
	if id == 0 {
		return fmt.Errorf("%s: cannot break the hold: %w", l.name,
			&zk.Error{Op: "get", Path: first.Node, Err: zk.ErrNoAuth})
	}
	_, err := deleteEntries(ctx, l.z, hold, id)
	owned := func(e inspect.Entry) bool { return e.Session != 0 }
	switch holders := hold.Holders(); {
	case err == nil:
		return nil
	case !errors.Is(err, inspect.ErrNotHeld):
		return fmt.Errorf("%s: %w", l.name, err)
	case len(holders) == 0:
		return errNoHolder
	case slices.ContainsFunc(holders, owned):
		return errReleased
	}
	return &cli.ExitError{Code: cli.ExitNo, Err: fmt.Errorf("%s: %w", l.name, err)}
}

// print prints one line for each hold.
func (o *outcome) print(out io.Writer, name string) error {
	for _, e := range inspect.FirstPerAcquire(o.released) {
		if _, err := fmt.Fprintf(out, "%s released %s\n", cli.DescribeOwner(e.Entry), name); err != nil {
			return err
		}
	}
	for _, e := range inspect.FirstPerAcquire(o.broken) {
		if err := printBroken(out, name, e); err != nil {
			return err
		}
	}
	return nil
}
