package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

const herdHelp = `Herd measures the herd effect: many contenders wait for one lock, and herd
counts what each release costs: sessions that wake up, requests, bytes in both
directions, and the time until the next grant. It compares textbook recipes in
which one release wakes all waiters, improved textbook recipes, and zklock's
locks. --recipes selects some of them; -o name prints their names.

Each contender has its own session. ZooKeeper accepts 60 connections per address
by default. On named servers the contenders therefore share at most 50 sessions,
and the table says so, because the watches of one session on one znode count
once. --sessions sets another number.

The numbers of waiters (--waiters) are 1, 3, 10, 30, 100, 300, and 1000 by
default, with one experiment each. Experiments that do not fit into --budget are
skipped. Herd removes all its znodes. It is a load on the servers: with 1000
waiters, a herd reads lists of 20 MB at every release.`

const herdExample = `  zklock bench herd                           # an in-memory server
  zklock bench herd --waiters 10,100 --svg herd.svg
  zklock bench herd --servers zk1:2181 --recipes one-node -o json`

// politeSessions is the default number of sessions on named servers: fewer than the 60
// connections that ZooKeeper permits for an address (maxClientCnxns), because other
// programs on this machine need some of them.
const politeSessions = 50

// herdFlags are the flags of zklock bench herd.
type herdFlags struct {
	waiters  []int
	recipes  []string
	releases int
	sessions int
	budget   cli.Duration
	out      cli.Output
	svg      string
}

// benchHerdCommand is zklock bench herd.
func benchHerdCommand(a *cli.App) *cobra.Command {
	f := herdFlags{budget: cli.Duration{D: time.Minute}}
	c := &cobra.Command{
		Use:     "herd",
		Short:   "Measure the cost of a release while many clients wait",
		Long:    herdHelp,
		Example: herdExample,
		Args:    cli.Exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.Begin(c, a.Settings.Check, f.out.Check); err != nil {
				return err
			}
			return benchHerd(a, &f)
		},
	}
	flags := c.Flags()
	a.ServerFlags(c)
	cli.IgnoreCurrentContext(c)
	flags.Lookup("servers").Usage = inMemoryServers
	flags.IntSliceVar(&f.waiters, "waiters", []int{1, 3, 10, 30, 100, 300, 1000}, "`numbers` of waiters; default: 1 to 1000")
	flags.StringSliceVar(&f.recipes, "recipes", nil, "`names` of the recipes to measure; default: all")
	flags.IntVar(&f.releases, "releases", 20, "`number` of releases per experiment")
	flags.IntVar(&f.sessions, "sessions", 0, "`number` of sessions that the contenders share")
	flags.Var(&f.budget, "budget", "time limit for the whole run")
	f.out.Flag(c)
	cli.CompleteFlagWords(c, "recipes", recipeNames())
	cli.CompleteNothing(c, "waiters", "releases", "sessions", "budget")
	flags.StringVar(&f.svg, "svg", "", "write a chart to this SVG `file`")
	return c
}

// recipeNames returns the values of --recipes.
func recipeNames() (names []string) {
	for _, r := range Recipes() {
		names = append(names, r.Name)
	}
	return names
}

// config checks the flags, before any I/O.
func (f *herdFlags) config() (HerdConfig, error) {
	for _, name := range f.recipes {
		if known := recipeNames(); !slices.Contains(known, name) {
			return HerdConfig{}, cli.UsageError("--recipes: %w", cli.OneOf(name, "recipe", known))
		}
	}
	switch {
	case f.budget.D <= 0:
		return HerdConfig{}, cli.UsageError("--budget is %v: give a time above 0", f.budget.D)
	case f.releases < 1 || f.releases > MaxReleases:
		return HerdConfig{}, cli.UsageError("--releases is %d: give a number from 1 to %d", f.releases, MaxReleases)
	case f.sessions < 0:
		return HerdConfig{}, cli.UsageError("--sessions is %d: give a number from 1 on, or 0 for one each", f.sessions)
	case len(f.waiters) == 0:
		return HerdConfig{}, cli.UsageError("--waiters is empty: give numbers, as 10,100")
	}
	for _, n := range f.waiters {
		if n < 1 || n > MaxWaiters {
			return HerdConfig{}, cli.UsageError("--waiters has %d: give numbers from 1 to %d", n, MaxWaiters)
		}
	}
	return HerdConfig{Recipes: Choose(f.recipes), Waiters: f.waiters, Releases: f.releases, Sessions: f.sessions, Budget: f.budget.D}, nil
}

// benchHerd runs the experiments and prints the results.
func benchHerd(a *cli.App, f *herdFlags) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	drawing, err := newDrawing(f.svg)
	if err != nil {
		return err
	}
	defer drawing.discard()
	// An interrupted run removes its znodes before it ends. By default, the signal would
	// leave them, and an incomplete line on a terminal.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, stop := cli.Interruptible(signals, nil)
	defer stop()
	where, end, err := herdServers(&a.Settings, ctx, &cfg)
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer end()
	tell, quiet := progressLine()
	done, all := 0, len(cfg.Recipes)*len(cfg.Waiters)
	cfg.Progress = func(r Row) {
		done++
		tell(fmt.Sprintf("%d of %d: %s, %d waiters", done, all, r.Recipe.Name, r.Waiters))
	}
	rows, err := RunHerd(ctx, cfg)
	quiet() // before anything else is written to the terminal
	if err != nil {
		return cli.Interrupted(ctx, a.Settings.Explain(err))
	}
	if err := drawing.write(where, rows); err != nil {
		return err
	}
	if err := cli.UntilInterrupted(ctx, func() error { return f.out.Write(os.Stdout, herdShown(where, rows)) }); err != nil {
		return cli.Interrupted(ctx, err)
	}
	return failures(rows)
}

// herdShown returns experiments in all output formats.
func herdShown(where string, rows []Row) cli.Result {
	return cli.Result{
		Table: func(out io.Writer) error {
			fmt.Fprintf(out, "On %s.\n", legible.Name(where))
			return WriteTable(out, rows)
		},
		Names: func() (names []string) {
			for _, r := range rows {
				if !slices.Contains(names, r.Recipe.Name) {
					names = append(names, r.Recipe.Name)
				}
			}
			return names
		},
		Data: func() []any { return []any{View(where, rows)} },
	}
}

// herdServers sets in cfg where to run, and returns a description of it. The caller must
// call end after the run.
func herdServers(s *cli.Settings, ctx context.Context, cfg *HerdConfig) (where string, end func(), err error) {
	cfg.Root = herdRoot()
	cfg.Connect = s.Connect.D
	cfg.Options = zk.Options{SessionTimeout: s.Session.D, Logger: s.Logger()}
	alone := s.Servers == "" && s.From.Context == ""
	if alone {
		if err := s.Identity.CheckLocal(); err != nil {
			return "", nil, err
		}
	}
	proof, err := s.Identity.Authentication()
	if err != nil {
		return "", nil, err
	}
	cfg.Options.TLS, cfg.Options.Auth, cfg.Options.SASL = proof.TLS, proof.Auth, proof.SASL
	if alone { // not the user's local server: it writes to a disk, and other commands use it
		return embedded(cfg, s.Session.D)
	}
	ctx, cancel := s.ConnectContext(ctx)
	defer cancel()
	t, err := s.Target(ctx)
	if err != nil {
		return "", nil, err
	}
	cfg.Servers = t.Servers
	cfg.Options.DialContext = t.Dial()
	if !strings.HasPrefix(t.Servers, "unix:") { // a socket has no address
		cfg.MaxSessions = politeSessions
	}
	return t.Servers, func() {}, nil
}

// progressLine returns a function that shows a text on a terminal, in place of the last one, and
// one that erases it.
func progressLine() (tell func(text string), wipe func()) {
	if !term.IsTerminal(2) {
		return func(string) {}, func() {}
	}
	return func(text string) { fmt.Fprint(cli.Stderr, cli.EraseLine, text) }, func() { fmt.Fprint(cli.Stderr, cli.EraseLine) }
}

// failures returns an error if experiments failed. An experiment that ran out of time did
// not fail: the table reports it.
func failures(rows []Row) error {
	failed := 0
	var first error
	for _, r := range rows {
		if r.Err != nil && !errors.Is(r.Err, ErrBudget) {
			failed++
			if first == nil {
				first = r.Err
			}
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d experiments failed: %w", failed, len(rows), first)
}
