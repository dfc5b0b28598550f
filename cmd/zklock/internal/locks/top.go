package locks

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/inspect"
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

// Top returns the command zklock top.
func Top(a *cli.App) *cobra.Command {
	var layout cli.LayoutValue
	var order string
	c := &cobra.Command{
		Use:     "top [PREFIX]",
		Short:   "Show locks and their queues live",
		Long:    topHelp,
		Example: topExample,
		Args:    cli.AtMostOnePrefix,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.Begin(c, a.Settings.Check); err != nil {
				return err
			}
			if !slices.Contains(Orders(), order) {
				return cli.UsageError("--sort is %q: give one of %s%s", order, strings.Join(Orders(), ", "), config.DidYouMean(order, Orders()))
			}
			prefix, err := cli.PrefixOf(c, args)
			if err != nil {
				return err
			}
			return top(a, layout, prefix, order)
		},
	}
	a.ServerFlags(c)
	a.Settings.ReadFlags(c)
	a.PrefixFlag(c)
	c.ValidArgsFunction = a.CompleteLocks
	layout.Flag(c)
	c.Flags().StringVar(&order, "sort", Orders()[0], "`order`: path (default), held, queue, wait")
	cli.CompleteFlagWords(c, "sort", Orders())
	return c
}

// top shows the locks until the user quits or a signal ends the command.
func top(a *cli.App, layout cli.LayoutValue, prefix, order string) error {
	if Possible(os.Stdin, os.Stdout) != nil {
		return cli.UsageError("zklock top needs a terminal for input and output; for a pipe or a log, use zklock ls --watch")
	}
	if !cli.ObeysSequences(1) {
		return cli.UsageError("zklock top needs a terminal that can move its cursor, and TERM is %q; zklock ls --watch does not", os.Getenv("TERM"))
	}
	z, err := a.Settings.ReadClient(context.Background())
	if err != nil {
		return err
	}
	defer z.Close()
	s := inspect.NewWatcher(z, &inspect.WatchOptions{Prefix: prefix, Layout: layout.Layout})
	defer s.Close()
	scr, err := Open(os.Stdin, os.Stdout, os.Getenv("NO_COLOR") == "")
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(signals)
	ctx, stop := cli.Interruptible(signals, nil)
	defer stop()
	m := &Model{Sort: order, ASCII: !cli.UTF8(os.Getenv), Strip: cli.NamesRoot + "/", History: s.History}
	return cli.Interrupted(ctx, showTop(ctx, s, scr, m))
}

// showTop calls runTop and restores the terminal. If ctx ends, it does not wait for a terminal
// that takes no output.
func showTop(ctx context.Context, s *inspect.Watcher, scr *Screen, m *Model) error {
	err := cli.UntilInterrupted(ctx, func() error {
		err := runTop(ctx, s, scr, m)
		return cmp.Or(err, scr.Close())
	})
	_ = scr.restore() // Close may not have ended
	return err
}
