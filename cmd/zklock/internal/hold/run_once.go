package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// skip returns nil if the command is to run, or if a signal ended ctx. If --once-per makes
// the command superfluous, or if that is unknown, skip releases the lock and returns why.
func (r *runner) skip(ctx context.Context, hold *zklock.Hold) error {
	if r.flags.oncePer.D == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, r.app.Settings.Session.D)
	defer cancel()
	last, done, err := hold.RanWithin(limited, r.flags.oncePer.D)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, zklock.ErrLost):
		err = &cli.ExitError{Code: cli.ExitLost, Err: err}
		r.status.Outcome = outcomeLost
	case err != nil:
		err = &cli.ExitError{Code: cli.ExitFailed, Err: err}
	case !done:
		return nil
	default:
		r.status.Outcome = outcomeDone
		err = &cli.ExitError{Err: errors.New(doneText(last))} // with code 0, it is printed only on a terminal
	}
	if failed := r.release(hold); failed != nil && !errors.Is(failed, zklock.ErrLost) {
		cli.Warn("%v", failed)
	}
	return err
}

// doneText says which run makes another one superfluous.
func doneText(last zklock.Run) string {
	return fmt.Sprintf("skipped: a run%s that began at %s succeeded", cli.ByOwner(last.Owner), last.Began.Format(time.DateTime))
}

// recordRun records for --once-per that the command has succeeded.
func (r *runner) recordRun(hold *zklock.Hold, exit process.Exit) error {
	if r.flags.oncePer.D == 0 || exit.Status() != 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.app.Settings.Session.D)
	defer cancel()
	return hold.RecordRun(ctx)
}
