package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
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

// benchFlags are the flags of zklock bench.
type benchFlags struct {
	out        cli.Output
	budget     cli.Duration
	contenders int
}

// Command returns the command zklock bench.
func Command(a *cli.App) *cobra.Command {
	f := benchFlags{budget: cli.Duration{D: 10 * time.Second}}
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure the latency of lock operations",
		Long:    benchHelp,
		Example: benchExample,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.Begin(c, a.Settings.Check, f.check); err != nil {
				return err
			}
			return bench(a, &f)
		},
	}
	c.Args, _ = cli.Subcommand("", "")
	a.ServerFlags(c)
	c.Flags().Lookup("servers").Usage = inMemoryServers
	cli.IgnoreCurrentContext(c)
	c.Flags().Var(&f.budget, "budget", "time limit for the whole run")
	c.Flags().IntVar(&f.contenders, "contenders", 3, "`number` of sessions in the queue")
	f.out.Flag(c)
	cli.CompleteNothing(c, "budget", "contenders")
	c.AddCommand(benchHerdCommand(a))
	return c
}

// check returns an error if the flags are invalid.
func (f *benchFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.budget.D < 100*time.Millisecond:
		return cli.UsageError("--budget is %v: give a time of 100ms at least", f.budget.D)
	case f.contenders < 2 || f.contenders > politeSessions:
		return cli.UsageError("--contenders is %d: give a number from 2 to %d", f.contenders, politeSessions)
	}
	return f.out.Check(flags)
}

// bench measures and prints the results.
func bench(a *cli.App, f *benchFlags) error {
	// An interrupted run removes its znodes before it ends.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, stop := cli.Interruptible(signals, nil)
	defer stop()
	var cfg HerdConfig // says where to run
	where, end, err := herdServers(&a.Settings, ctx, &cfg)
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer end()
	tell, quiet := progressLine()
	rows, err := MeasureFigures(ctx, FiguresConfig{
		Dial: func(ctx context.Context) (*zk.Client, error) {
			ctx, cancel := a.Settings.ConnectContext(ctx)
			defer cancel()
			return zk.Dial(ctx, cfg.Servers, &cfg.Options)
		},
		Root: cfg.Root, Each: f.budget.D / 5, Contenders: f.contenders, Progress: func(name string) { tell("measuring: " + name) },
	})
	quiet()
	if err != nil {
		return cli.Interrupted(ctx, a.Settings.Explain(err))
	}
	err = cli.UntilInterrupted(ctx, func() error { return f.out.Write(os.Stdout, benchShown(where, rows)) })
	return cli.Interrupted(ctx, err)
}

// rowView is a measurement in JSON.
type rowView struct {
	Name   string  `json:"name"`
	Where  string  `json:"where"`
	Count  int     `json:"count"`
	Second float64 `json:"perSecond"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

// brief formats a short time in a suitable unit.
func brief(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%dµs", d.Microseconds())
	}
	return fmt.Sprintf("%.2fms", float64(d.Microseconds())/1000)
}

// benchShown returns measurements in all output formats.
func benchShown(where string, rows []Figure) cli.Result {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return cli.Result{
		Table: func(out io.Writer) error {
			c := cli.Table{}
			c.Add([]string{"WHAT", "TIMES", "A SECOND", "MEDIAN", "P99", "LONGEST"})
			for _, r := range rows {
				c.Add([]string{r.Name, strconv.Itoa(r.Count), fmt.Sprintf("%.0f", r.Rate()), brief(r.P50), brief(r.P99), brief(r.Max)})
			}
			if _, err := fmt.Fprintf(out, "On %s, one request at a time.\n", legible.Name(where)); err != nil {
				return err
			}
			return c.Flush(out)
		},
		Names: func() (names []string) {
			for _, r := range rows {
				names = append(names, r.Name)
			}
			return names
		},
		Data: func() (all []any) {
			for _, r := range rows {
				all = append(all, rowView{r.Name, where, r.Count, r.Rate(), ms(r.P50), ms(r.P99), ms(r.Max)})
			}
			return all
		},
	}
}
