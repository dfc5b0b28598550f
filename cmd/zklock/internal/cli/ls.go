package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/survey"
)

// namesRoot is where names without a slash live.
const namesRoot = "/zklock"

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

// lsCommand is zklock ls.
func (a *app) lsCommand() *cobra.Command {
	var f readFlags
	c := &cobra.Command{
		Use:     "ls [PREFIX]",
		Short:   "List the locks that have holders or waiters",
		Long:    lsHelp,
		Example: lsExample,
		Args:    atMostOnePrefix,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := errors.Join(a.set.check(c.Flags()), f.check(c)); err != nil {
				return err
			}
			prefix, err := prefixOf(c, args)
			if err != nil {
				return err
			}
			if f.watch {
				return a.watchList(&f, prefix)
			}
			return a.ls(&f, prefix)
		},
	}
	a.serverFlags(c)
	a.prefixFlag(c)
	f.layout.flag(c)
	f.out.flag(c)
	f.watchFlag(c)
	c.ValidArgsFunction = a.completeLocks
	return c
}

// atMostOnePrefix refuses more arguments than one.
func atMostOnePrefix(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("zklock %s takes one prefix, and got %d arguments", c.Name(), len(args))
	}
	return nil
}

// prefixPath is the path below which to look.
func prefixPath(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return namesRoot, nil
	case args[0] == "/": // no lock can have that name, and all are below it
		return "/", nil
	}
	return zklock.PathOf(strings.TrimSuffix(args[0], "/"))
}

// prefixFlag adds the prefix as a flag, for those who look for it there.
func (a *app) prefixFlag(c *cobra.Command) {
	c.Flags().String("prefix", "", "the same as the argument `PREFIX`")
	_ = c.RegisterFlagCompletionFunc("prefix", a.completeMore) // the flag is there
}

// prefixOf is the path below which to look, by the argument or the flag.
func prefixOf(c *cobra.Command, args []string) (string, error) {
	if f := c.Flags().Lookup("prefix"); f.Changed {
		if len(args) > 0 {
			return "", usage("--prefix %s and %s: give one of them", f.Value, args[0])
		}
		args = []string{f.Value.String()}
	}
	return prefixPath(args)
}

// ls prints the locks below prefix.
func (a *app) ls(f *readFlags, prefix string) error {
	ctx := context.Background()
	z, r, err := a.set.reader(ctx, f.layout)
	if err != nil {
		return err
	}
	defer z.Close()
	defer r.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &listing{out: &f.out, to: os.Stdout, lines: newLining(listSoft()...)}
	return l.run(func(found func(*survey.Lock)) error {
		_, err := r.Walk(ctx, prefix, survey.Limits{Each: a.set.limit(), Found: found})
		return err
	}, cancel)
}

// lockList is locks in all forms.
func lockList(found []*survey.Lock) shown {
	return shown{
		table: func(out io.Writer) error { return printLocks(out, found, time.Now()) },
		names: func() []string {
			var names []string
			for _, s := range found {
				names = append(names, nameOf(s.Path))
			}
			return names
		},
		data: func() []any {
			var all []any
			for _, s := range found {
				all = append(all, s.View())
			}
			return all
		},
	}
}

// nameOf is the shortest name that means a path.
func nameOf(path string) string {
	name := strings.TrimPrefix(path, namesRoot+"/")
	if strings.HasPrefix(name, "-") {
		return path // the name would be a flag of the command that it is given to
	}
	return name
}

// listHeader are the titles of a list of locks.
func listHeader() []string { return []string{"LOCK", "MODE", "HOLDER", "COMMAND", "SINCE", "WAITING"} }

// listSoft are the columns of a list that may be cut: lock, holder and command.
func listSoft() []int { return []int{0, 2, 3} }

// listRow is a lock in a list.
func listRow(s *survey.Lock, now time.Time) []string {
	holder, runs, since := "-", "-", "-"
	if all := s.Holders(); len(all) > 0 {
		first := all[0]
		holder, runs, since = who(first.Entry), command(first.Entry), span.Short(now.Sub(first.Since))
		if others := survey.Differing(all) - 1; others > 0 {
			holder += fmt.Sprintf(" +%d", others)
		}
	}
	return []string{legible.Name(nameOf(s.Path)), how(s), holder, runs, since, strconv.Itoa(s.Waiting())}
}

// printLocks writes one line a lock.
func printLocks(out io.Writer, found []*survey.Lock, now time.Time) error {
	if len(found) == 0 {
		return nil
	}
	var l listing
	return l.table(out, found, now)
}

// how says how a lock is held, for people.
func how(s *survey.Lock) string {
	held := s.Holders()
	switch {
	case s.Kind == survey.Node:
		return "node"
	case s.Permits > 0:
		return fmt.Sprintf("%d of %d", len(held), s.Permits)
	case s.Kind == survey.Semaphore:
		return count(len(held), "permit")
	case len(held) > 0:
		return string(held[0].Mode)
	}
	return "-"
}
