package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/zk"
)

const showHelp = `Show prints the holders of LOCK and its queue, in order. It reads locks of
every kind: mutexes, read-write locks, semaphores, single znodes, and leader
latches of zklock, Curator, kazoo, go-zookeeper, and the recipes in ZooKeeper's
source. The column RECIPE names the recipe. TOKEN is the fencing token of a
holder. SINCE is the age of an entry, including its time in the queue, because
the servers do not record the time of the grant.

Warnings follow if recipes on this path do not exclude each other, or if there
are strays: znodes that are not entries of a lock. If there are more than 20000
strays, or a znode of the lock has more than 100000 children, the path is
probably not a lock: show reads no entries, says so, and exits with 125.

With -o name it prints the paths of the entries' znodes.

` + watchHelp

const showExample = `  zklock show nightly
  zklock show --watch nightly
  zklock show --json /apps/billing | jq .holders
  zklock show --layout custom:exclusive=-W-,shared=-R- /legacy/catalog`

// readFlags are those of commands that look at locks.
type readFlags struct {
	layout layoutValue
	out    output
	watch  bool
}

// check refuses what makes no sense.
func (r *readFlags) check(c *cobra.Command) error { return r.out.check(c.Flags()) }

// showCommand is zklock show.
func (a *app) showCommand() *cobra.Command {
	var f readFlags
	c := &cobra.Command{
		Use:     "show LOCK",
		Short:   "Show the holder and the queue of a lock",
		Long:    showHelp,
		Example: showExample,
		Args:    exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if !f.watch {
				return a.lookAt(c, &f, args[0], a.show)
			}
			path, err := a.accept(c, &f, args[0])
			if err != nil {
				return err
			}
			return a.watchLock(&f, args[0], path)
		},
	}
	a.lookFlags(c, &f)
	f.watchFlag(c)
	return c
}

// lookFlags adds what commands have that look at one lock.
func (a *app) lookFlags(c *cobra.Command, f *readFlags) {
	a.serverFlags(c)
	f.layout.flag(c)
	f.out.flag(c)
	c.ValidArgsFunction = a.completeLocks
}

// accept checks the command line of a command that looks at the lock called name, and
// returns the lock's path.
func (a *app) accept(c *cobra.Command, f *readFlags, name string) (string, error) {
	if err := a.begin(c); err != nil {
		return "", err
	}
	if err := errors.Join(a.set.check(c.Flags()), f.check(c)); err != nil {
		return "", err
	}
	return zklock.PathOf(name)
}

// lookAt connects to look at the lock called name.
func (a *app) lookAt(c *cobra.Command, f *readFlags, name string, do func(context.Context, *oneLock) error) error {
	path, err := a.accept(c, f, name)
	if err != nil {
		return err
	}
	ctx := context.Background()
	z, r, err := a.set.reader(ctx, f.layout)
	if err != nil {
		return err
	}
	defer z.Close()
	defer r.Close()
	return do(ctx, &oneLock{f, legible.Name(name), path, z, r})
}

// oneLock is what a command that looks at one lock works with.
type oneLock struct {
	*readFlags
	name, path string // the name is for people
	z          *zk.Client
	r          *survey.Reader
}

// show prints one lock.
func (a *app) show(ctx context.Context, l *oneLock) error {
	ctx, cancel := a.set.bounded(ctx)
	defer cancel()
	s, err := l.r.LookClosely(ctx, l.path)
	if err != nil {
		return err
	}
	return l.out.write(os.Stdout, oneLockShown(s, l.name))
}

// oneLockShown is a lock in all forms.
func oneLockShown(s *survey.Lock, name string) shown {
	return shown{
		table: func(out io.Writer) error { return printLock(out, s, name, time.Now()) },
		names: func() []string { return nodes(s.Entries) },
		data:  func() []any { return []any{s.View()} },
	}
}

// nodes are the paths of entries' znodes.
func nodes(entries []survey.Entry) []string {
	var nodes []string
	for _, e := range entries {
		nodes = append(nodes, e.Node)
	}
	return nodes
}

// printLock writes one line an entry, the holders first, and what to know besides. It
// writes all in one go: an error of any line is one of all.
func printLock(out io.Writer, s *survey.Lock, name string, now time.Time) error {
	var text bytes.Buffer
	if line := headline(s, name); line != "" {
		fmt.Fprintln(&text, line)
	}
	if len(s.Entries) > 0 {
		if err := printEntries(&text, s.Entries, now); err != nil {
			return err
		}
	}
	// A hold of several permits was asked once, for people.
	for _, e := range survey.Once(s.Entries) {
		if e.Revoked {
			fmt.Fprintf(&text, "%s was asked to give it back\n", survey.Who(e.Entry))
		}
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", w)
	}
	_, err := out.Write(text.Bytes())
	return err
}

// headline says in one line what the table does not; it may be empty.
func headline(s *survey.Lock, name string) string {
	name = legible.Name(name)
	held := len(s.Holders())
	switch {
	case s.Permits > 0:
		return fmt.Sprintf("%s: %d of %d permits held", name, held, s.Permits)
	case s.Kind == survey.Semaphore:
		return fmt.Sprintf("%s: %s held", name, count(held, "permit"))
	case len(s.Contenders()) > 0:
	case s.KazooPermits() > 0:
		return fmt.Sprintf("%s: %s of kazoo's Semaphore held", name, count(s.KazooPermits(), "permit"))
	default:
		return name + " is free"
	}
	return ""
}

// printEntries writes the table.
func printEntries(out io.Writer, entries []survey.Entry, now time.Time) error {
	c := newLining(1, 2, 3, 7) // whatever is anybody's word
	c.add([]string{"TURN", "WHO", "USER", "COMMAND", "MODE", "TOKEN", "SINCE", "RECIPE"})
	for _, e := range entries {
		turn, token := "stray", "-"
		switch {
		case e.Mode == zklock.Stray && e.Recipe.Kind != "":
			turn = "other"
		case e.Holder:
			turn, token = "holds", fmt.Sprint(e.Token)
		case e.Turn > 0:
			turn = span.Ordinal(e.Turn)
		}
		// A downgraded writer's token is older than its entry, which looks wrong
		// to whoever compares them.
		recipe := e.Recipe.String()
		if e.Mode == zklock.Shared && e.Owner.Token > 0 {
			recipe += ", was writer"
		}
		c.add([]string{turn, who(e.Entry), account(e.Entry), command(e.Entry), string(e.Mode), token, span.Short(now.Sub(e.Since)), recipe})
	}
	return c.flush(out)
}

// dash stands for what is not known.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// count writes a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
