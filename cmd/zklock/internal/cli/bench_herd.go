package cli

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

	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/herd"
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

// politeSessions is how many sessions a run on named servers takes unless told
// otherwise: fewer than the 60 connections that ZooKeeper grants an address
// (maxClientCnxns), since others on this machine need some.
const politeSessions = 50

// herdFlags are the flags of bench herd alone.
type herdFlags struct {
	waiters  []int
	recipes  []string
	releases int
	sessions int
	budget   span.Value
	out      output
	svg      string
}

// benchHerdCommand is zklock bench herd.
func (a *app) benchHerdCommand() *cobra.Command {
	f := herdFlags{budget: span.Value{D: time.Minute}}
	c := &cobra.Command{
		Use:     "herd",
		Short:   "Measure the cost of a release while many clients wait",
		Long:    herdHelp,
		Example: herdExample,
		Args:    exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := errors.Join(a.set.check(c.Flags()), f.out.check(c.Flags())); err != nil {
				return err
			}
			return a.benchHerd(&f)
		},
	}
	flags := c.Flags()
	a.serverFlags(c)
	working(c)
	flags.Lookup("servers").Usage = inMemoryServers
	flags.IntSliceVar(&f.waiters, "waiters", []int{1, 3, 10, 30, 100, 300, 1000}, "`numbers` of waiters; default: 1 to 1000")
	flags.StringSliceVar(&f.recipes, "recipes", nil, "`names` of the recipes to measure; default: all")
	flags.IntVar(&f.releases, "releases", 20, "number of releases per experiment")
	flags.IntVar(&f.sessions, "sessions", 0, "`number` of sessions that the contenders share")
	flags.Var(&f.budget, "budget", "time limit for the whole run")
	f.out.flag(c)
	offer(c, "recipes", strings.Split(recipeNames(), ", "))
	offerNothing(c, "waiters", "releases", "sessions", "budget")
	flags.StringVar(&f.svg, "svg", "", "write a chart to this SVG `file`")
	return c
}

// recipeNames lists what --recipes takes.
func recipeNames() string {
	var names []string
	for _, r := range herd.Recipes() {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}

// config checks the flags, before any I/O.
func (f *herdFlags) config() (herd.Config, error) {
	for _, name := range f.recipes {
		if known := strings.Split(recipeNames(), ", "); !slices.Contains(known, name) {
			return herd.Config{}, usage("--recipes: %w", oneOf(name, "recipe", known))
		}
	}
	recipes, err := herd.Choose(f.recipes)
	switch {
	case err != nil:
		return herd.Config{}, usage("--recipes: %s", strings.TrimPrefix(err.Error(), herd.ErrConfig.Error()+": "))
	case f.budget.D <= 0:
		return herd.Config{}, usage("--budget is %v: give a time above 0", f.budget.D)
	case f.releases < 1 || f.releases > herd.MaxReleases:
		return herd.Config{}, usage("--releases is %d: give a number from 1 to %d", f.releases, herd.MaxReleases)
	case f.sessions < 0:
		return herd.Config{}, usage("--sessions is %d: give a number from 1 on, or 0 for one each", f.sessions)
	case len(f.waiters) == 0:
		return herd.Config{}, usage("--waiters is empty: give numbers, as 10,100")
	}
	for _, n := range f.waiters {
		if n < 1 || n > herd.MaxWaiters {
			return herd.Config{}, usage("--waiters has %d: give numbers from 1 to %d", n, herd.MaxWaiters)
		}
	}
	return herd.Config{Recipes: recipes, Waiters: f.waiters, Releases: f.releases, Sessions: f.sessions, Budget: f.budget.D}, nil
}

// benchHerd runs the experiments and shows what they found.
func (a *app) benchHerd(f *herdFlags) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	drawing, err := newDrawing(f.svg)
	if err != nil {
		return err
	}
	defer drawing.discard()
	// An interrupted run removes its znodes before it ends: by default the signal
	// would leave them, and on a terminal a line half written.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, stop := interruptible(signals, nil)
	defer stop()
	where, end, err := a.set.herdServers(ctx, &cfg)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer end()
	tell, quiet := progress(len(cfg.Recipes) * len(cfg.Waiters))
	cfg.Progress = tell
	rows, err := herd.Run(ctx, cfg)
	quiet() // before anything else is written to the terminal
	if err != nil {
		return interrupted(ctx, a.set.explain(err))
	}
	if err := drawing.write(where, rows); err != nil {
		return err
	}
	if err := f.out.write(os.Stdout, herdShown(where, rows)); err != nil {
		return err
	}
	return failures(rows)
}

// herdShown is experiments in all forms.
func herdShown(where string, rows []herd.Row) shown {
	return shown{
		table: func(out io.Writer) error {
			fmt.Fprintf(out, "On %s.\n", legible.Name(where))
			return herd.WriteTable(out, rows)
		},
		names: func() (names []string) {
			for _, r := range rows {
				if !slices.Contains(names, r.Recipe.Name) {
					names = append(names, r.Recipe.Name)
				}
			}
			return names
		},
		data: func() []any { return []any{herd.View(where, rows)} },
	}
}

// herdServers says in cfg where to run, and for people as well. end must be
// called after the run.
func (s *settings) herdServers(ctx context.Context, cfg *herd.Config) (where string, end func(), err error) {
	cfg.Root = herdRoot()
	cfg.Connect = s.connect.D
	cfg.Options = zk.Options{SessionTimeout: s.session.D, Logger: s.logger()}
	// Not the user's local server: that one writes to a disk, and others use it.
	if s.servers == "" && s.from.context == "" {
		if s.who.tls.Wanted() {
			return "", nil, errLocalTLS()
		}
		return embedded(cfg, s.session.D)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	t, err := s.target(ctx)
	if err != nil {
		return "", nil, err
	}
	cfg.Servers = t.servers
	cfg.Options.DialContext = t.dial()
	proof, err := s.who.proof()
	if err != nil {
		return "", nil, err
	}
	cfg.Options.TLS, cfg.Options.Auth, cfg.Options.SASL = proof.tls, proof.Auth, proof.SASL
	if !strings.HasPrefix(t.servers, "unix:") { // which has no address to count by
		cfg.MaxSessions = politeSessions
	}
	return t.servers, func() {}, nil
}

// progress returns a function that counts rows on a terminal, of so many, and
// one that wipes the count away.
func progress(of int) (tell func(herd.Row), wipe func()) {
	if !term.IsTerminal(2) {
		return nil, func() {}
	}
	done := 0
	tell = func(r herd.Row) {
		done++
		fmt.Fprintf(os.Stderr, "%s%d of %d: %s, %d waiters", eraseLine, done, of, r.Recipe.Name, r.Waiters)
	}
	return tell, func() { fmt.Fprint(os.Stderr, eraseLine) }
}

// failures is the error for experiments that failed. That the time was not
// enough for some is none: the table says it.
func failures(rows []herd.Row) error {
	failed := 0
	var first error
	for _, r := range rows {
		if r.Err != nil && !errors.Is(r.Err, herd.ErrBudget) {
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
