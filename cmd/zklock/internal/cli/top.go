package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/screen"
	"github.com/zklock/zklock/cmd/zklock/internal/top"
	live "github.com/zklock/zklock/internal/survey"
)

const topHelp = `Top shows the locks below PREFIX live in the terminal: their modes, holders,
hold times, and numbers of waiters. The default prefix is /zklock, which
contains all locks whose names do not begin with a slash; "/" shows all locks.
--prefix is the same as the argument. Enter shows the queue of a lock as a
chain, in which each waiter follows its predecessor. The last line shows the
most used keys, and "?" shows all keys.

It reads all locks once, with a bounded number of reads. From ZooKeeper 3.6,
the servers then report changes, so idle locks cause no requests; the limit is
500 requests per second. It works over ssh and on a terminal of 80x24. If
NO_COLOR is set, it uses no colors. If LANG does not name UTF-8, it draws with
ASCII.`

const topExample = `  zklock top
  zklock top /apps/billing
  zklock top / --sort wait      # the longest waits of all first`

// topCommand is zklock top.
func (a *app) topCommand() *cobra.Command {
	var layout layoutValue
	var order string
	c := &cobra.Command{
		Use:     "top [PREFIX]",
		Short:   "Show locks and their queues live",
		Long:    topHelp,
		Example: topExample,
		Args:    atMostOnePrefix,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := a.set.check(c.Flags()); err != nil {
				return err
			}
			if !slices.Contains(top.Orders(), order) {
				return usage("--sort is %q: give one of %s%s", order, strings.Join(top.Orders(), ", "), didYouMean(order, top.Orders()))
			}
			prefix, err := prefixOf(c, args)
			if err != nil {
				return err
			}
			return a.top(layout, prefix, order)
		},
	}
	a.serverFlags(c)
	a.prefixFlag(c)
	c.ValidArgsFunction = a.completeLocks
	layout.flag(c)
	c.Flags().StringVar(&order, "sort", top.Orders()[0], "`order`: path (default), held, queue, wait")
	offer(c, "sort", top.Orders())
	return c
}

// top shows the locks until somebody quits.
func (a *app) top(layout layoutValue, prefix, order string) error {
	if os.Getenv("TERM") == "dumb" {
		return usage("zklock top needs a terminal that can move its cursor, and TERM is dumb; zklock ls --watch does not")
	}
	if err := screen.Possible(os.Stdin, os.Stdout); err != nil {
		return usage("zklock top: %w; for a pipe or a log there is zklock ls --watch", err)
	}
	z, c, err := a.set.reading(context.Background(), layout)
	if err != nil {
		return err
	}
	defer z.Close()
	_ = c.Close() // the survey has one of its own
	s := live.New(z, &live.Options{Prefix: prefix, Layout: layout.Layout})
	defer s.Close()
	scr, err := screen.Open(os.Stdin, os.Stdout, os.Getenv("NO_COLOR") == "")
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	// Ends with ctx.
	go func() {
		select {
		case sig := <-signals:
			cancel(&exitError{exitSignal + int(sig.(syscall.Signal)), nil})
		case <-ctx.Done():
		}
	}()
	m := &top.Model{Sort: order, ASCII: !screen.UTF8(os.Getenv), Strip: namesRoot + "/", History: s.History}
	err = top.Run(ctx, s, scr, m)
	if back := scr.Close(); back != nil && err == nil {
		err = back
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
