package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zklock/zklock/cmd/zklock/internal/gauge"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/herd"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

const benchHelp = `Bench measures the latency of the operations that locks consist of: a read, a
linearizable read (sync and read), a write, acquiring and releasing a free
lock, and the handover from one session's release to the next session's grant
with waiters in the queue. It sends one request at a time, so it shows what one
program sees, not the maximum throughput of the servers.

It never uses the current context: name the servers that you want to load.
Without --servers and --context it measures an in-memory server in its own
process. It removes all its znodes.

With -o name it prints the names of the measurements.`

const benchExample = `  zklock bench                                      # an in-memory server
  zklock bench --servers zk1:2181,zk2:2181,zk3:2181
  zklock bench --context prod --budget 30s -o json
  zklock bench herd`

// inMemoryServers is the usage of --servers for commands that measure.
const inMemoryServers = "comma-separated `servers`; default: in memory"

// benchFlags are those of bench.
type benchFlags struct {
	out        output
	budget     span.Value
	contenders int
}

// benchCommand is zklock bench.
func (a *app) benchCommand() *cobra.Command {
	f := benchFlags{budget: span.Value{D: 10 * time.Second}}
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure the latency of lock operations",
		Long:    benchHelp,
		Example: benchExample,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := errors.Join(a.set.check(c.Flags()), f.check(c)); err != nil {
				return err
			}
			return a.bench(&f)
		},
	}
	c.Args, _ = subcommand("", "")
	a.serverFlags(c)
	c.Flags().Lookup("servers").Usage = inMemoryServers
	working(c)
	c.Flags().Var(&f.budget, "budget", "time limit for the whole run")
	c.Flags().IntVar(&f.contenders, "contenders", 3, "`number` of sessions in the queue")
	f.out.flag(c)
	offerNothing(c, "budget", "contenders")
	c.AddCommand(a.benchHerdCommand())
	return c
}

// check refuses what makes no sense.
func (f *benchFlags) check(c *cobra.Command) error {
	switch {
	case f.budget.D < 100*time.Millisecond:
		return usage("--budget is %v: give a time of 100ms at least", f.budget.D)
	case f.contenders < 2 || f.contenders > politeSessions:
		return usage("--contenders is %d: give a number from 2 to %d", f.contenders, politeSessions)
	}
	return f.out.check(c.Flags())
}

// bench measures, and shows what it found.
func (a *app) bench(f *benchFlags) error {
	// An interrupted run removes its znodes before it ends.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, stop := interruptible(signals, nil)
	defer stop()
	var cfg herd.Config // for where to run
	where, end, err := a.set.herdServers(ctx, &cfg)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer end()
	progress, quiet := func(string) {}, func() {}
	if term.IsTerminal(2) {
		progress = func(name string) { fmt.Fprintf(os.Stderr, "%smeasuring: %s", eraseLine, name) }
		quiet = func() { fmt.Fprint(os.Stderr, eraseLine) }
	}
	rows, err := gauge.Run(ctx, gauge.Config{
		Dial: func(ctx context.Context) (*zk.Client, error) {
			ctx, cancel := a.set.bounded(ctx)
			defer cancel()
			return zk.Dial(ctx, cfg.Servers, &cfg.Options)
		},
		Root: cfg.Root, Each: f.budget.D / 5, Contenders: f.contenders, Progress: progress,
	})
	quiet()
	if err != nil {
		return interrupted(ctx, a.set.explain(err))
	}
	return f.out.write(os.Stdout, benchShown(where, rows))
}

// rowView is a measurement as JSON.
type rowView struct {
	Name   string  `json:"name"`
	Where  string  `json:"where"`
	Count  int     `json:"count"`
	Second float64 `json:"perSecond"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

// brief writes a short time for people, in the unit that suits it.
func brief(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%dµs", d.Microseconds())
	}
	return fmt.Sprintf("%.2fms", float64(d.Microseconds())/1000)
}

// benchShown is measurements in all forms.
func benchShown(where string, rows []gauge.Row) shown {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return shown{
		table: func(out io.Writer) error {
			c := lining{}
			c.add([]string{"WHAT", "TIMES", "A SECOND", "MEDIAN", "P99", "LONGEST"})
			for _, r := range rows {
				c.add([]string{r.Name, strconv.Itoa(r.Count), fmt.Sprintf("%.0f", r.Rate()), brief(r.P50), brief(r.P99), brief(r.Max)})
			}
			if _, err := fmt.Fprintf(out, "On %s, one request at a time.\n", legible.Name(where)); err != nil {
				return err
			}
			return c.flush(out)
		},
		names: func() (names []string) {
			for _, r := range rows {
				names = append(names, r.Name)
			}
			return names
		},
		data: func() (all []any) {
			for _, r := range rows {
				all = append(all, rowView{r.Name, where, r.Count, r.Rate(), ms(r.P50), ms(r.P99), ms(r.Max)})
			}
			return all
		},
	}
}
