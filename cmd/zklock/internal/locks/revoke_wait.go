package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
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
// can claim. It does not break a hold whose entry exists but does not count as a holder, see
// [inspect.Lock.StillHeld]: that hold stays in result.held.
func breakAsked(a *cli.App, ctx context.Context, l *oneLock, s *inspect.Lock, result *outcome) error {
	ctx, cancel := a.Settings.ConnectContext(ctx)
	defer cancel()
	var kept []inspect.Entry
	defer func() { result.held = append(kept, result.held...) }()
	for len(result.held) > 0 {
		first := result.held[0]
		same := func(e inspect.Entry) bool { return e.Session == first.Session && e.Token == first.Token }
		hold := *s
		hold.Entries = s.OfHold(first)
		holds := len(hold.Holders()) > 0
		_, err := deleteEntries(ctx, l.z, &hold, hold.Entries[0].Czxid)
		switch {
		case errors.Is(err, inspect.ErrNotHeld) && !holds:
			kept = append(kept, first)
		case errors.Is(err, inspect.ErrNotHeld): // it was released since the read
			result.released = append(result.released, first)
		case err != nil:
			return fmt.Errorf("%s: %w", l.name, err)
		default:
			result.broken = append(result.broken, first)
		}
		result.held = slices.DeleteFunc(result.held, same)
	}
	return nil
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
