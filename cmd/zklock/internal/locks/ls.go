package locks

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

const lsHelp = `Ls lists the locks below PREFIX that a client holds or waits for. The default
prefix is /zklock, which contains all locks whose names do not begin with a
slash. "/" lists all locks on the servers. --prefix is the same as the argument.

It reads locks of every kind and of every library. An ephemeral znode that is
not part of a queue counts as a lock of one znode, so the list can contain
znodes that other programs do not use as locks.

It reads at most 20000 znodes, beginning with the parents that have the fewest
children. If there are more, or if the servers deny access to some, it prints
the locks that it found, says so, and exits with 125: give a longer PREFIX.
During a long read it prints new results twice a second, each time in path
order.

With -o name it prints the names of the locks.

` + watchHelp

const lsExample = `  zklock ls
  zklock ls reports
  zklock ls --watch -o name        # a name each time that a lock changes
  zklock ls / --json | jq -r 'select(.waiting > 0).path'`

// List returns zklock ls.
func List(a *cli.App) *cobra.Command {
	var f readFlags
	c := &cobra.Command{
		Use:     "ls [PREFIX]",
		Short:   "List the locks that have holders or waiters",
		Long:    lsHelp,
		Example: lsExample,
		Args:    cli.AtMostOnePrefix,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.Begin(c, a.Settings.Check, f.out.Check); err != nil {
				return err
			}
			prefix, err := cli.PrefixOf(c, args)
			if err != nil {
				return err
			}
			if f.watch {
				return watchList(a, &f, prefix)
			}
			return ls(a, &f, prefix)
		},
	}
	a.ServerFlags(c)
	a.Settings.ReadFlags(c)
	a.PrefixFlag(c)
	f.layout.Flag(c)
	f.out.Flag(c)
	f.watchFlag(c)
	c.ValidArgsFunction = a.CompleteLocks
	return c
}

// ls prints the locks below prefix.
func ls(a *cli.App, f *readFlags, prefix string) error {
	ctx := context.Background()
	z, r, err := a.Settings.Reader(ctx, f.layout)
	if err != nil {
		return err
	}
	defer z.Close()
	defer r.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &listing{out: &f.out, to: os.Stdout, table: lockTable{lines: cli.NewTable(shrinkable()...)}}
	l.line = a.Settings.Progress("reading the locks below %s", legible.Name(prefix))
	defer l.line.Stop()
	err = l.run(func(found func(*inspect.Lock)) error {
		_, err := r.List(ctx, prefix, inspect.ListOptions{Timeout: a.Settings.ConnectLimit(), OnLock: found})
		return err
	}, cancel)
	if err == nil && !l.printed && term.IsTerminal(1) && term.IsTerminal(2) {
		l.line.Stop()
		cli.Warn("%s", noneBelow(prefix))
	}
	return err
}

// noneBelow tells that there are no locks below a prefix, and where others may be.
func noneBelow(prefix string) string {
	text := "no lock below " + legible.Name(prefix) + " is held or waited for"
	if prefix != "/" {
		text += "; zklock ls / lists those of all paths"
	}
	return text
}

// lockList returns the locks in all output formats. The rows continue table.
func lockList(found []*inspect.Lock, table *lockTable, now time.Time) cli.Result {
	return cli.Result{
		Table: func(out io.Writer) error { return table.print(out, found, now) },
		Names: func() (names []string) {
			for _, s := range found {
				names = append(names, cli.NameOf(s.Path))
			}
			return names
		},
		Data: func() (all []any) {
			for _, s := range found {
				all = append(all, s.View())
			}
			return all
		},
	}
}

// lockTable is a list of locks as a table, which can grow.
type lockTable struct {
	lines cli.Table
	begun bool // the column heads are printed
}

// print prints one line per lock.
func (t *lockTable) print(out io.Writer, found []*inspect.Lock, now time.Time) error {
	if !t.begun {
		t.begun = true
		t.lines.Add([]string{"LOCK", "MODE", "HOLDER", "COMMAND", "SINCE", "WAITING"})
	}
	for _, s := range found {
		t.lines.Add(listRow(s, now))
	}
	return t.lines.Flush(out)
}

// shrinkable returns the columns of a list that may be cut: lock, holder, and command.
func shrinkable() []int { return []int{0, 2, 3} }

// listRow returns the row of a lock in a list.
func listRow(l *inspect.Lock, now time.Time) []string {
	s := l.Summary()
	holder, since := cli.OrDash(s.OwnerName), "-"
	if s.OwnerName != "" {
		since = cli.ShortDuration(now.Sub(s.Since))
	}
	if s.Others > 0 {
		holder += fmt.Sprintf(" +%d", s.Others)
	}
	return []string{legible.Name(cli.NameOf(s.Path)), howHeld(s), holder, cli.OrDash(s.Command), since, strconv.Itoa(s.Waiting)}
}

// howHeld returns the mode of a lock, or how many of its permits are held.
func howHeld(s inspect.Summary) string {
	switch {
	case s.Kind == inspect.KindNode:
		return "node"
	case s.Permits > 0:
		return fmt.Sprintf("%d of %d", s.Holders, s.Permits)
	case s.Kind == inspect.KindSemaphore:
		return cli.Count(s.Holders, "permit")
	case s.Holders > 0:
		return string(s.Mode)
	}
	return "-"
}
