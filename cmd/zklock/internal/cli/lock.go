package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/child"
)

const lockHelp = `Lock takes LOCK, prints its fencing token, and holds it until it is interrupted
(INT, TERM or HUP), which exits 0. It exits 120 when the lock is lost. Nothing
stops what others do under this hold: zklock run does.`

func (a *app) lockCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lock LOCK",
		Short: "Hold a lock until interrupted",
		Long:  lockHelp,
		Args:  exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := a.set.check(c.Flags()); err != nil {
				return err
			}
			return a.lock(args[0])
		},
	}
	a.set.serverFlags(c.Flags())
	a.set.waitFlags(c.Flags())
	return c
}

// lock holds until a signal or the loss.
func (a *app) lock(name string) error {
	path, err := zklock.PathOf(name)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, child.Forwarded()...)
	outlivePipes()
	ctx, stop := interruptible(signals)
	defer stop()
	me := owner("lock")
	c, _, err := a.set.locks(ctx, zklock.Options{Owner: &me, OnJeopardy: jeopardy})
	if err != nil {
		return interrupted(ctx, err)
	}
	defer c.Close()
	hold, err := a.set.acquire(ctx, c.Mutex(path), name, newWaitLine(nil, me))
	if err != nil {
		return err
	}
	_, unread := fmt.Println(hold.Token())
	if unread == nil {
		select {
		case <-ctx.Done():
		case <-hold.Done():
		}
	}
	lost := hold.Err()
	end, cancel := context.WithTimeout(context.Background(), a.set.releaseTime())
	defer cancel()
	err = hold.Release(end)
	if errors.Is(lost, zklock.ErrLost) {
		return &exitError{exitLost, lost}
	}
	if unread != nil {
		err = errors.Join(fmt.Errorf("the token cannot be written: %w", unread), err)
	}
	return err
}
