package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/internal/survey"
)

const lockHelp = `Lock acquires LOCK, prints its fencing token, and holds it until INT, TERM, or
HUP arrives; then it exits with 0. If the lock is lost, it exits with 120. No
process is stopped when the lock is lost; zklock run stops its command. On a
terminal, ^Z suspends the foreground process only, and the lock stays held.

With several locks (--lock), it prints one line "TOKEN PATH" per lock, or with
-o json or yaml one object with the mode, the session, and the locks. -o name
prints the paths of the locks.

On a release request (zklock revoke, Curator's Revoker), lock prints a notice
and keeps the lock. With --on-revoke term it releases the lock and exits with
0.

` + waitHelp + `

` + whereHelp + `the output of --json and -o yaml.

` + aclHelp + `

` + layoutHelp

const lockExample = `  zklock lock maintenance
  zklock lock --shared catalog
  zklock lock --json --count 3 --permits 2 api`

// lockFlags are the flags of lock alone.
type lockFlags struct {
	claim  claim
	revoke onRevoke
	out    output
}

// lockCommand is zklock lock.
func (a *app) lockCommand() *cobra.Command {
	var f lockFlags
	c := &cobra.Command{
		Use:     "lock LOCK",
		Short:   "Hold a lock until interrupted",
		Long:    lockHelp,
		Example: lockExample,
		Args:    exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := f.claim.check(c.Flags(), args[0]); err != nil {
				return err
			}
			if err := errors.Join(a.set.check(c.Flags()), f.out.check(c.Flags())); err != nil {
				return err
			}
			return a.lock(&f)
		},
	}
	a.serverFlags(c)
	c.ValidArgsFunction = a.completeLocks
	a.set.waitFlags(c.Flags())
	f.claim.flags(c.Flags())
	offer(c, "layout", layoutNames())
	offer(c, "acl", []string{aclOpen, aclCreator, aclCreatorRead})
	_ = c.RegisterFlagCompletionFunc("lock", a.completeMore) // the flag is there
	working(c)
	f.revoke.flag(c)
	f.out.flag(c)
	return c
}

// lock holds until a signal, the loss, or the wish of another: in the front's
// stead if there is a terminal, whose ^Z would stop this process and let its
// session expire.
func (a *app) lock(f *lockFlags) error {
	if !a.keeper && front.Wanted() {
		exe, err := executable()
		if err != nil {
			return err
		}
		n, err := front.Run(exe, a.args)
		if err != nil {
			return err
		}
		return &exitError{Code: n}
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, child.Forwarded()...)
	outlivePipes()
	ctx, stop := interruptible(signals, a.link)
	defer stop()
	began := time.Now()
	me := owner("lock") // there is no command to name
	a.set.sayWhere(term.IsTerminal(2))
	c, _, err := a.set.locks(ctx, f.claim.options(zklock.Options{Owner: &me, OnJeopardy: func(e zklock.Event) { jeopardy(e, a.set.on()) }}))
	if err != nil {
		return interrupted(ctx, err)
	}
	defer c.Close()
	hold, err := a.set.acquire(ctx, c, &f.claim, newWaitLine(a.link, me, a.set.on()), began)
	if err != nil {
		return err
	}
	// A script that reads the token and does not get it would work without a lock
	// to its name, and this hold would stay for ever with nobody to end it.
	unread := f.print(os.Stdout, hold, a.set.where())
	if unread == nil {
		f.keep(ctx, hold)
	}
	lost := hold.Err() // before the release, after which it would say released
	// ctx may have been ended by a signal: the release has a time of its own.
	end, cancel := context.WithTimeout(context.Background(), a.set.releaseTime())
	defer cancel()
	err = hold.Release(end)
	if lost == nil {
		lost = err // the release finds out that the znode is gone
	}
	if errors.Is(lost, zklock.ErrLost) {
		return &exitError{exitLost, fmt.Errorf("%w%s", lost, a.set.on())}
	}
	if unread != nil {
		err = errors.Join(fmt.Errorf("the token cannot be written: %w", unread), err)
	}
	return err
}

// keep waits until there is a reason to end.
func (f *lockFlags) keep(ctx context.Context, hold *zklock.Hold) {
	revoked := hold.Revoked()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hold.Done():
			return
		case <-revoked:
			revoked = nil // closed, it would be ready for ever
			f.revoke.tell(f.claim.title(), "giving it back", "it is still held")
			if f.revoke.term {
				return
			}
		}
	}
}

// grant is what lock -o json prints.
type grant struct {
	Mode    zklock.Mode `json:"mode"`
	Session string      `json:"session"`
	Locks   []held      `json:"locks"`
	Servers string      `json:"servers"`
}

// print writes what was granted.
func (f *lockFlags) print(out io.Writer, hold *zklock.Hold, servers string) error {
	locks := f.claim.locks(hold)
	return f.out.write(out, shown{
		table: func(out io.Writer) (err error) {
			if len(locks) == 1 {
				_, err = fmt.Fprintln(out, locks[0].Token)
			} else {
				_, err = fmt.Fprintln(out, tokenLines(locks))
			}
			return err
		},
		names: func() (paths []string) {
			for _, l := range locks {
				paths = append(paths, l.Path)
			}
			return paths
		},
		data: func() []any { return []any{grant{f.claim.mode(), sessionID(hold.Session()), locks, servers}} },
	})
}

// sessionID writes a session's id as ZooKeeper's own tools do.
func sessionID(id int64) string { return survey.SessionID(id) }
