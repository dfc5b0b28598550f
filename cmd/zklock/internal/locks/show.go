package locks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

const showHelp = `Show prints the holders of LOCK and its queue, in order. It reads locks of
every kind: mutexes, read-write locks, semaphores, single znodes, and leader
latches of zklock, Curator, kazoo, go-zookeeper, and the recipes in ZooKeeper's
source. POSITION counts the waiters: the next waiter has position 1.
The column RECIPE names the recipe. TOKEN is the fencing token of a holder.
SINCE is the age of an entry, including its time in the queue, because the
servers do not record the time of the grant. VALUE is what a client published
with its entry (zklock run --value), cut to 64 characters; -o json has the whole
value. The table has this column only if an entry has a value. If the servers
remember a run of a job (zklock run --once-per), show prints the last one.

Warnings follow if recipes on this path do not exclude each other, or if there
are strays: znodes that are not entries of a lock. If there are more than 20000
strays, or a znode of the lock has more than 100000 children, the path is
probably not a lock: show reads no entries, says so, and exits with 125.

With -o name it prints the paths of the entries' znodes.

` + watchHelp

const showExample = `  zklock show nightly
  zklock show --watch nightly
  zklock show --json /apps/billing | jq .holders
  zklock show --json web | jq -r '.entries[] | select(.holder).value'
  zklock show --layout custom:exclusive=-W-,shared=-R- /legacy/catalog`

// readFlags are the flags of commands that read locks.
type readFlags struct {
	layout cli.LayoutValue
	out    cli.Output
	watch  bool
}

// Show returns zklock show.
func Show(a *cli.App) *cobra.Command {
	var f readFlags
	c := &cobra.Command{
		Use:     "show LOCK",
		Short:   "Show the holder and the queue of a lock",
		Long:    showHelp,
		Example: showExample,
		Args:    cli.Exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if !f.watch {
				return withLock(a, c, &f, args[0], func(ctx context.Context, l *oneLock) error { return show(a, ctx, l) })
			}
			path, err := checkArguments(a, c, &f, args[0])
			if err != nil {
				return err
			}
			return watchLock(a, &f, args[0], path)
		},
	}
	lockReadFlags(a, c, &f)
	f.watchFlag(c)
	a.Settings.ReadFlags(c)
	return c
}

// lockReadFlags adds the flags of commands that read one lock.
func lockReadFlags(a *cli.App, c *cobra.Command, f *readFlags) {
	a.ServerFlags(c)
	f.layout.Flag(c)
	f.out.Flag(c)
	c.ValidArgsFunction = a.CompleteLocks
}

// checkArguments checks the command line of a command that reads the lock called name, and
// returns the path of the lock.
func checkArguments(a *cli.App, c *cobra.Command, f *readFlags, name string) (string, error) {
	if err := a.Begin(c, a.Settings.Check, f.out.Check); err != nil {
		return "", err
	}
	return zklock.PathOf(name)
}

// withLock connects, and calls do with the lock called name.
func withLock(a *cli.App, c *cobra.Command, f *readFlags, name string, do func(context.Context, *oneLock) error) error {
	path, err := checkArguments(a, c, f, name)
	if err != nil {
		return err
	}
	ctx := context.Background()
	z, r, err := a.Settings.Reader(ctx, f.layout)
	if err != nil {
		return err
	}
	defer z.Close()
	defer r.Close()
	return do(ctx, &oneLock{f, legible.Name(name), path, z, r})
}

// oneLock is the lock of a command that reads one lock, with its connection.
type oneLock struct {
	*readFlags
	name, path string // the name is for messages
	z          *zk.Client
	r          *inspect.Reader
}

// show prints one lock.
func show(a *cli.App, ctx context.Context, l *oneLock) error {
	ctx, cancel := a.Settings.ConnectContext(ctx)
	defer cancel()
	line := a.Settings.Progress("reading %s", l.name)
	s, err := l.r.ReadDetail(ctx, l.path)
	line.Stop()
	if err != nil {
		return err
	}
	if err := l.out.Write(os.Stdout, lockResult(s, l.name)); err != nil || len(s.Entries) > 0 || !term.IsTerminal(1) || !term.IsTerminal(2) {
		return err
	}
	// A user may have mistyped the name, or omitted the path of another program's lock.
	if _, exists, err := l.z.Exists(ctx, l.path); err == nil && !exists {
		cli.Warn("the znode %s does not exist; zklock ls / lists the locks of all paths", legible.Path(l.path))
	}
	return nil
}

// lockResult returns a lock in all output formats.
func lockResult(s *inspect.Lock, name string) cli.Result {
	return cli.Result{
		Table: func(out io.Writer) error { return printLock(out, s, name, time.Now()) },
		Names: func() []string { return nodes(s.Entries) },
		Data:  func() []any { return []any{s.View()} },
	}
}

// nodes returns the paths of the znodes of entries.
func nodes(entries []inspect.Entry) []string {
	var nodes []string
	for _, e := range entries {
		nodes = append(nodes, e.Node)
	}
	return nodes
}

// printLock prints one line per entry, the holders first, then release requests and
// warnings. It writes them in one call.
func printLock(out io.Writer, s *inspect.Lock, name string, now time.Time) error {
	var text bytes.Buffer
	if line := headline(s, name); line != "" {
		fmt.Fprintln(&text, line)
	}
	if len(s.Entries) > 0 {
		if err := printEntries(&text, s.Entries, now); err != nil {
			return err
		}
	}
	// A hold of several permits has several entries, but prints one line.
	for _, e := range inspect.FirstPerAcquire(s.Entries) {
		if e.Revoked {
			fmt.Fprintf(&text, "%s was asked to release it%s\n", inspect.OwnerName(e.Entry), cli.DescribeRequest(e.Request))
		}
	}
	if last := s.LastRun; !last.Began.IsZero() {
		fmt.Fprintf(&text, "last run: began %s ago%s, ended %s ago, token %d\n", cli.ShortDuration(now.Sub(last.Began)), cli.ByOwner(last.Owner),
			cli.ShortDuration(now.Sub(last.Ended)), last.Token)
	}
	for _, n := range s.Notes() {
		fmt.Fprintf(&text, "note: %s\n", n)
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", w)
	}
	_, err := out.Write(text.Bytes())
	return err
}

// headline returns the line above the table, or "".
func headline(s *inspect.Lock, name string) string {
	name = legible.Name(name)
	held := s.HeldPermits()
	switch {
	case s.Permits > 0:
		return fmt.Sprintf("%s: %d of %d permits held", name, held, s.Permits)
	case s.Kind == inspect.KindSemaphore:
		return fmt.Sprintf("%s: %s held", name, cli.Count(held, "permit"))
	case len(s.Contenders()) > 0:
	case s.KazooPermits() > 0:
		return fmt.Sprintf("%s: %s of kazoo's Semaphore held", name, cli.Count(s.KazooPermits(), "permit"))
	default:
		return name + " is free"
	}
	return ""
}

// printEntries prints the table. It has a column for values if an entry has one.
func printEntries(out io.Writer, entries []inspect.Entry, now time.Time) error {
	c := cli.NewTable(1, 2, 3, 7, 8) // the columns that other clients wrote
	valued := slices.ContainsFunc(entries, func(e inspect.Entry) bool { return e.Value != "" })
	add := func(row []string, value string) {
		if valued {
			row = append(row, value)
		}
		c.Add(row)
	}
	add([]string{"POSITION", "WHO", "USER", "COMMAND", "MODE", "TOKEN", "SINCE", "RECIPE"}, "VALUE")
	for _, e := range entries {
		position, token := "stray", "-"
		switch {
		case e.Mode == zklock.Stray && e.Recipe.Kind != "":
			position = "other"
		case e.Holder:
			position, token = "holds", fmt.Sprint(e.Token)
		case e.Position > 0:
			position = strconv.Itoa(e.Position)
		}
		// The token of a downgraded writer is older than its entry, which would look
		// wrong without an explanation.
		recipe := e.Recipe.String()
		if e.Mode == zklock.Shared && e.Owner.Token > 0 && e.Owner.Token == e.Token {
			recipe += ", was writer"
		}
		add([]string{position, inspect.OwnerName(e.Entry), cli.OwnerUser(e.Entry), cli.OwnerCommand(e.Entry), string(e.Mode), token, cli.ShortDuration(now.Sub(e.Since)), recipe},
			cli.OrDash(inspect.Truncate(inspect.Value(e.Entry), inspect.MaxOwnerName)))
	}
	return c.Flush(out)
}
