package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/litter"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/legible"
)

const gcHelp = `Gc removes empty parent znodes that locks left below PREFIX and that no client
has used for some time (--unused; 0 means any empty one). Without --delete it
only lists them; with --delete it asks for confirmation and then removes them.
The servers themselves remove ZooKeeper's containers, which zklock and Curator
create, some minutes after their last use. The parents of kazoo, and those on
servers before ZooKeeper 3.5, stay until gc removes them.

Gc removes a persistent znode without data that once had children and now has
none, or only such children, and a semaphore without permits. It never removes
PREFIX itself. Give a prefix that contains only locks: an empty queue of another
program looks the same.

A lock that a client acquires meanwhile stays, because the servers remove a
znode only while it has no children. Clients of zklock, Curator, and
go-zookeeper create a missing parent again. A kazoo lock object that was used
before does not, and fails: make --unused longer than the pauses of such
programs.

All times are server times. Gc reads the time from a znode that it creates and
deletes in one transaction, which no client sees. If that is not permitted, the
last change that it reads counts as the present, so fewer parents count as
unused. The clock of this machine does not matter.

The servers record the order of changes, but not the time. Gc estimates when a
parent was last used by comparing it with newer znodes. For this purpose, gc
--delete writes the mark /zklock-gc and uses the previous one. Gc keeps a parent
that it does not know to be unused for that long: run it again after that time.

It makes at most 20000 reads. With -o name it prints the paths.

Exit codes:
  0    done, also if there was nothing to remove
  1    you answered no
  125  a znode could not be read or removed`

const gcExample = `  zklock gc /zklock                         # list what would be removed
  zklock gc /zklock --delete                # ask, then remove it
  zklock gc /apps/locks --unused 720h --delete --yes -o json`

// gcFlags are those of gc.
type gcFlags struct {
	out    output
	unused span.Value
	delete bool
	yes    bool
}

// gcCommand is zklock gc.
func (a *app) gcCommand() *cobra.Command {
	f := gcFlags{unused: span.Value{D: 24 * time.Hour}}
	c := &cobra.Command{
		Use:     "gc PREFIX",
		Short:   "Remove empty parent znodes that locks left",
		Long:    gcHelp,
		Example: gcExample,
		Args:    exactly(1, "one prefix"),
		RunE: func(c *cobra.Command, args []string) error {
			ask := newAsker(f.yes)
			if err := f.check(c, ask); err != nil {
				return err
			}
			if err := a.begin(c); err != nil {
				return err
			}
			if err := a.set.check(c.Flags()); err != nil {
				return err
			}
			if args[0] == "/" {
				return usage("below / are other programs' znodes as well, and empty ones of theirs look the same: give a prefix that has locks only, as %s", namesRoot)
			}
			prefix, err := prefixPath(args)
			if err != nil {
				return err
			}
			return a.gc(&f, prefix, ask)
		},
		ValidArgsFunction: a.completeLocks,
	}
	a.serverFlags(c)
	f.out.flag(c)
	c.Flags().Var(&f.unused, "unused", "keep what was used in this time")
	c.Flags().BoolVar(&f.delete, "delete", false, "remove the znodes instead of listing them")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "with --delete: do not ask for confirmation")
	offerNothing(c, "unused")
	return c
}

// check refuses what makes no sense.
func (f *gcFlags) check(c *cobra.Command, ask asker) error {
	switch {
	case f.unused.D < 0:
		return usage("--unused is %v: give a time from 0 on", f.unused.D)
	case f.yes && !f.delete:
		return usage("--yes is about --delete: give both")
	}
	if f.delete {
		if err := ask.check(); err != nil {
			return err
		}
	}
	return f.out.check(c.Flags())
}

// gc lists, and removes if that is wanted.
func (a *app) gc(f *gcFlags, prefix string, ask asker) error {
	ctx := context.Background()
	z, own, err := a.set.reading(ctx, layoutValue{})
	if err != nil {
		return err
	}
	defer z.Close()
	defer own.Close()
	s := litter.Search{Z: z, Prefix: prefix, Unused: f.unused.D}
	looking, cancel := context.WithTimeout(ctx, gcTime)
	defer cancel()
	if err := s.Ask(looking); err != nil {
		return err
	}
	if s.Now.IsZero() {
		warn("the servers do not tell you their time: what changed last, of what is read, counts as now")
	}
	found, stopped := s.Find(looking)
	if stopped != nil && !errors.Is(stopped, litter.ErrTooMany) {
		return stopped
	}
	if !f.delete {
		return errors.Join(f.print(os.Stdout, prefix, found), stopped)
	}
	if n := tally(found)[litter.Unused]; n > 0 {
		if !f.yes {
			if err := f.printTable(os.Stderr, prefix, found); err != nil {
				return err
			}
		}
		if err := ask.sure(fmt.Sprintf("Remove %s below %s, on %s?", count(n, "empty parent"), legible.Name(prefix), a.set.where())); err != nil {
			return err
		}
	}
	removing, cancel := context.WithTimeout(ctx, gcTime)
	defer cancel()
	err = s.Remove(removing, found)
	// The mark of the last run has served by now.
	if left := s.Leave(removing); left != nil {
		err = errors.Join(err, fmt.Errorf("no mark for the next run: %w", left))
	}
	return errors.Join(f.print(os.Stdout, prefix, found), err, refusals(found), stopped)
}

// gcTime bounds each half of gc.
const gcTime = 5 * time.Minute

// tally counts parents by their states.
func tally(found []litter.Parent) map[litter.State]int {
	n := map[litter.State]int{}
	for _, p := range found {
		n[p.State]++
	}
	return n
}

// refusals is the error for parents that the servers did not let be removed.
func refusals(found []litter.Parent) error {
	i := slices.IndexFunc(found, func(p litter.Parent) bool { return p.State == litter.Refused })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s could not be removed, of which the first is %s: %w", count(tally(found)[litter.Refused], "parent"), legible.Name(found[i].Path), found[i].Err)
}

// parentView is a parent as JSON.
type parentView struct {
	Path  string       `json:"path"`
	State litter.State `json:"state"`
	// Since is when it was used at the latest, if that is known.
	Since time.Time `json:"since,omitzero"`
}

// print writes what was found, and what became of it.
func (f *gcFlags) print(out io.Writer, prefix string, found []litter.Parent) error {
	return f.out.write(out, shown{
		table: func(w io.Writer) error { return f.printTable(w, prefix, found) },
		names: func() (names []string) {
			for _, p := range found {
				if p.State == litter.Unused || p.State == litter.Removed {
					names = append(names, p.Path)
				}
			}
			return names
		},
		data: func() (all []any) {
			for _, p := range found {
				all = append(all, parentView{p.Path, p.State, p.Since})
			}
			return all
		},
	})
}

// meaning is a state for people.
func meaning(s litter.State) string {
	switch s {
	case litter.Unused:
		return "would be removed"
	case litter.Recent:
		return "left: not known to be unused for so long"
	case litter.Removed:
		return "removed"
	case litter.Taken:
		return "left: used meanwhile"
	case litter.Vanished:
		return "gone already"
	}
	return "left: the servers refuse"
}

// printTable writes one line a parent, and what to do next.
func (f *gcFlags) printTable(out io.Writer, prefix string, found []litter.Parent) error {
	if len(found) == 0 {
		_, err := fmt.Fprintf(out, "there are no empty parents below %s\n", legible.Name(prefix))
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARENT\tUNUSED FOR\t")
	for _, p := range found {
		unused := "-"
		if !p.Since.IsZero() {
			unused = span.Short(p.For)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", oneCell(legible.Name(p.Path)), unused, meaning(p.State))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	n := tally(found)
	switch {
	case n[litter.Unused] > 0 && !f.delete:
		_, err := fmt.Fprintf(out, "%s would be removed: add --delete\n", count(n[litter.Unused], "parent"))
		return err
	case n[litter.Recent] == len(found) && !f.delete:
		_, err := fmt.Fprintf(out, "nothing to remove yet: gc --delete leaves a mark, which tells more in %s\n", span.Short(f.unused.D))
		return err
	}
	return nil
}
