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

const gcHelp = `Gc removes what locks below PREFIX have left behind: empty parents that nobody
has used for a time. By default it only lists them; with --delete it asks, and
then removes them. ZooKeeper's containers, which zklock and Curator make, are
removed by the servers themselves some minutes after their last use; kazoo's
parents, and those of servers before ZooKeeper 3.5, stay for ever.

What counts is a znode that is not ephemeral, with no data, that had children
once and has none now, or none but such ones; and a semaphore with no permits.
The PREFIX itself stays. Give one below which there are locks and nothing else:
an empty queue of another program looks the same.

A lock that somebody takes meanwhile stays: the servers remove a znode only if
it has no children at that moment. One who is about to take a lock makes its
parent again, as zklock, Curator and go-zookeeper do; an object of kazoo's that
has used the lock before does not, and fails. So choose --unused longer than
such programs pause.

All times are the servers': they are asked by a znode that is made and deleted in
one transaction, which nobody sees. Where that is not permitted the last change that
it reads counts as now, so that less is known to be unused. How this machine's
clock is set does not matter.

Servers note the order of what happens, and not the time. How long a parent was
not used is known by comparison with znodes that were made since; so that there
is one, gc --delete leaves a mark in time, /zklock-gc, and goes by the last one.
What is not known to be unused for so long is left: run it again after that
time.

It makes 20000 reads at most. It exits 0 also if there is nothing to remove, 1
if you said no, and 125 if something could not be read or removed.`

const gcExample = `  zklock gc /zklock                               # what would be removed
  zklock gc /zklock --delete                      # ask, and remove it
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
		Short:   "Remove empty parents that locks left behind",
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
	f.out.flag(c, "the parents' paths")
	c.Flags().Var(&f.unused, "unused", "leave what may have been used within this time; 0 takes all that is empty")
	c.Flags().BoolVar(&f.delete, "delete", false, "remove them, and do not only list them")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "with --delete: do not ask")
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
