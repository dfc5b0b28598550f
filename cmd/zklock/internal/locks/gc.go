package locks

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

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

const gcHelp = `Gc removes empty parent znodes that locks left below PREFIX and that no client
has used for some time (--unused; 0 means any empty one). Without --delete it
only lists them; with --delete it asks for confirmation and then removes them.
The servers themselves remove ZooKeeper's containers, which zklock and Curator
create, some minutes after their last use. The parents of kazoo, and those on
servers before ZooKeeper 3.5.1, stay until gc removes them.

Gc removes a persistent znode without data that once had children and now has
none, or only such children, and a semaphore without permits. It keeps a znode
whose ACL permits less than the ACL of the znode above it, because that ACL can
protect locks. It never removes PREFIX itself. Give a prefix that contains only
locks: an empty queue of another program looks the same.

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

It lists at most 20000 znodes. With -o name it prints the paths.

Exit codes:
  0    done, also if there was nothing to remove
  1    you answered no
  125  a znode could not be read or removed`

const gcExample = `  zklock gc /zklock                         # list what would be removed
  zklock gc /zklock --delete                # ask, then remove it
  zklock gc /apps/locks --unused 720h --delete --yes -o json`

// gcFlags are the flags of zklock gc.
type gcFlags struct {
	out    cli.Output
	unused cli.Duration
	delete bool
	yes    bool
}

// GC returns zklock gc.
func GC(a *cli.App) *cobra.Command {
	f := gcFlags{unused: cli.Duration{D: 24 * time.Hour}}
	c := &cobra.Command{
		Use:     "gc PREFIX",
		Short:   "List or remove empty parent znodes of locks",
		Long:    gcHelp,
		Example: gcExample,
		Args:    cli.Exactly(1, "one prefix"),
		RunE: func(c *cobra.Command, args []string) error {
			ask := cli.NewConfirmer(f.yes)
			if err := f.check(c, ask); err != nil {
				return err
			}
			if err := a.Begin(c, a.Settings.Check); err != nil {
				return err
			}
			if args[0] == "/" {
				return cli.UsageError("/ also contains znodes of other programs, and their empty znodes look the same: give a prefix that contains only locks, such as %s", cli.NamesRoot)
			}
			prefix, err := cli.PrefixPath(args)
			if err != nil {
				return err
			}
			return gc(a, &f, prefix, ask)
		},
		ValidArgsFunction: a.CompleteLocks,
	}
	a.ServerFlags(c)
	f.out.Flag(c)
	c.Flags().Var(&f.unused, "unused", "keep znodes used in this time")
	c.Flags().BoolVar(&f.delete, "delete", false, "remove the znodes instead of listing them")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "with --delete: do not ask for confirmation")
	cli.CompleteNothing(c, "unused")
	return c
}

// check returns an error if the flags are invalid.
func (f *gcFlags) check(c *cobra.Command, ask cli.Confirmer) error {
	switch {
	case f.unused.D < 0:
		return cli.UsageError("--unused is %v: give 0 or more", f.unused.D)
	case f.yes && !f.delete:
		return cli.UsageError("--yes applies to --delete: give both")
	}
	if f.delete {
		if err := ask.Check(); err != nil {
			return err
		}
	}
	return f.out.Check(c.Flags())
}

// gc lists the empty parents, and removes them with --delete.
func gc(a *cli.App, f *gcFlags, prefix string, ask cli.Confirmer) error {
	ctx := context.Background()
	z, err := a.Settings.ReadClient(ctx)
	if err != nil {
		return err
	}
	defer z.Close()
	s := inspect.Collector{Client: z, Prefix: prefix, MinUnused: f.unused.D, Timeout: a.Settings.ConnectLimit()}
	line := a.Settings.Progress("reading the parents below %s", legible.Name(prefix))
	defer line.Stop()
	if err := s.ReadTime(ctx); err != nil {
		return err
	}
	found, stopped := s.Find(ctx)
	line.Stop()
	if s.Now.IsZero() {
		cli.Warn("the servers do not report their time: the latest change that gc reads counts as the present")
	}
	if stopped != nil && !errors.Is(stopped, inspect.ErrTooMany) && !errors.Is(stopped, zk.ErrNoAuth) {
		return stopped
	}
	if !f.delete {
		return errors.Join(f.print(os.Stdout, prefix, found), stopped)
	}
	if n := tally(found)[inspect.ParentUnused]; n > 0 {
		if !f.yes {
			if err := f.printTable(os.Stderr, prefix, found); err != nil {
				return err
			}
		}
		if err := ask.Confirm(fmt.Sprintf("Remove %s below %s, on %s?", cli.Count(n, "empty parent"), legible.Name(prefix), a.Settings.ServersText())); err != nil {
			return err
		}
	}
	line = a.Settings.Progress("removing parents below %s", legible.Name(prefix))
	defer line.Stop()
	err = s.Remove(ctx, found)
	// The search has used the mark of the last run, so it can be replaced.
	if left := s.LeaveMark(ctx); left != nil {
		err = errors.Join(err, fmt.Errorf("write the mark for the next run: %w", left))
	}
	line.Stop()
	return errors.Join(f.print(os.Stdout, prefix, found), err, refusals(found), stopped)
}

// tally counts the parents by state.
func tally(found []inspect.EmptyParent) map[inspect.ParentState]int {
	n := map[inspect.ParentState]int{}
	for _, p := range found {
		n[p.State]++
	}
	return n
}

// refusals returns an error if the servers refused to remove parents.
func refusals(found []inspect.EmptyParent) error {
	i := slices.IndexFunc(found, func(p inspect.EmptyParent) bool { return p.State == inspect.ParentRefused })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s could not be removed; the first is %s: %w", cli.Count(tally(found)[inspect.ParentRefused], "parent"), legible.Name(found[i].Path), found[i].Err)
}

// parentView is a parent in JSON.
type parentView struct {
	Path  string              `json:"path"`
	State inspect.ParentState `json:"state"`
	// Since is the latest time at which it can have been used, if known.
	Since time.Time `json:"since,omitzero"`
}

// print prints the parents and their states.
func (f *gcFlags) print(out io.Writer, prefix string, found []inspect.EmptyParent) error {
	return f.out.Write(out, cli.Result{
		Table: func(w io.Writer) error { return f.printTable(w, prefix, found) },
		Names: func() (names []string) {
			for _, p := range found {
				if p.State == inspect.ParentUnused || p.State == inspect.ParentRemoved {
					names = append(names, p.Path)
				}
			}
			return names
		},
		Data: func() (all []any) {
			for _, p := range found {
				all = append(all, parentView{p.Path, p.State, p.UnusedSince})
			}
			return all
		},
	})
}

// stateText returns the text for a state.
func (f *gcFlags) stateText(s inspect.ParentState) string {
	switch s {
	case inspect.ParentUnused:
		return "would be removed"
	case inspect.ParentRecent:
		return "kept: may have been used within " + cli.ExactDuration(f.unused.D)
	case inspect.ParentRemoved:
		return "removed"
	case inspect.ParentInUse:
		return "kept: used meanwhile"
	case inspect.ParentGone:
		return "already gone"
	case inspect.ParentOwnACL:
		return "kept: its ACL permits less than the one above it"
	}
	return "kept: the servers refused to delete it"
}

// printTable prints one line per parent, and what to do next.
func (f *gcFlags) printTable(out io.Writer, prefix string, found []inspect.EmptyParent) error {
	if len(found) == 0 {
		_, err := fmt.Fprintf(out, "there are no empty parents below %s\n", legible.Name(prefix))
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARENT\tUNUSED FOR\tSTATE")
	for _, p := range found {
		unused := "-"
		if !p.UnusedSince.IsZero() {
			unused = cli.ShortDuration(p.UnusedFor)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", cli.OneCell(legible.Name(p.Path)), unused, f.stateText(p.State))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	n := tally(found)
	switch {
	case n[inspect.ParentUnused] > 0 && !f.delete:
		_, err := fmt.Fprintf(out, "%s would be removed: add --delete\n", cli.Count(n[inspect.ParentUnused], "parent"))
		return err
	case n[inspect.ParentRecent] == len(found) && !f.delete:
		_, err := fmt.Fprintf(out, "nothing to remove yet: run zklock gc %s --delete, which writes a mark, and again after %s\n", legible.Word(prefix), cli.ExactDuration(f.unused.D))
		return err
	}
	return nil
}
