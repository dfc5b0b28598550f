package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// exitUnknown is the exit code for "unknown" in monitoring.
const exitUnknown = 3

const doctorHelp = `Doctor checks the servers and the locks below PREFIX, and reports each problem
with its solution. The default prefix is /zklock; --prefix is the same as the
argument.
  servers   which servers answer, and their roles; quorum, and whether
            all are of one ensemble; versions; the latency of reads,
            syncs, and writes
  timeout   the session timeout compared with the servers' bounds and
            with syncLimit x tickTime; the leader's clock
  rate      whether this machine's clock is slewed, or chrony,
            timesyncd, or linuxptp may slew it, by more than locks
            assume; doctor cannot see the servers' clocks
  tokens    whether the last transaction id, from which fencing tokens
            come, is smaller than the one that doctor last saw for this
            context
  access    what the ACLs permit to you and to others
  locks     recipes on one path that do not exclude each other, strays,
            entries that no client will remove, sequence numbers near
            their end, sessions with many locks, sessions that wait for
            each other (a deadlock over several locks), holders that the
            servers do not hear from, and locks that are held much longer
            than usual, or longer than --held

With --watch it repeats the check every minute, or at the interval of --every,
and prints the report when the problems have changed, until it is interrupted.
With -o name it prints the subjects that have problems.

Doctor changes nothing. If permitted, it creates one znode and deletes it in the
same transaction, which no client sees, to read the leader's clock. It opens
three sessions per server, and one more. It keeps the highest transaction id of
a context in a file zxid-CONTEXT in the directory of the local server
(ZKLOCK_HOME). It finds more problems if the servers' whitelist of four-letter
words contains conf, mntr, dump, and cons.

Exit codes, as for monitoring plugins:
  0    no problem
  1    a warning
  2    critical
  3    a check failed, or wrong usage`

const doctorExample = `  zklock doctor
  zklock doctor --servers zk1,zk2,zk3 /apps/billing --held 1h
  zklock doctor --watch --every 10s
  zklock doctor -o json | jq -r '.findings[] | select(.level!="ok").what'`

// doctorFlags are the flags of zklock doctor.
type doctorFlags struct {
	layout cli.LayoutValue
	held   cli.Duration
	out    cli.Output
	watch  bool
	every  cli.Duration
}

// Command returns zklock doctor. For monitoring, every failure before the report is
// "unknown".
func Command(a *cli.App) *cobra.Command {
	f := doctorFlags{every: cli.Duration{D: time.Minute}}
	c := &cobra.Command{
		Use:     "doctor [PREFIX]",
		Short:   "Diagnose servers and locks",
		Long:    doctorHelp,
		Example: doctorExample,
		Args: func(c *cobra.Command, args []string) error {
			if err := cli.AtMostOnePrefix(c, args); err != nil {
				return unknown(err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := checkup(a, c, &f, args)
			if e, ok := errors.AsType[*cli.ExitError](err); err == nil || ok && e.Err == nil { // the report already says so
				return err
			}
			return unknown(err)
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return unknown(cli.FlagError(c, err)) })
	a.ServerFlags(c)
	a.PrefixFlag(c)
	f.layout.Flag(c)
	c.Flags().Var(&f.held, "held", "warn of locks held longer than this")
	f.out.Flag(c)
	c.Flags().BoolVar(&f.watch, "watch", false, "repeat, and print the report when it changes")
	c.Flags().Var(&f.every, "every", "with --watch: time between checks")
	c.ValidArgsFunction = a.CompleteLocks
	cli.CompleteNothing(c, "held", "every")
	return c
}

// unknown returns an error with the exit code for "unknown" in monitoring.
func unknown(err error) error { return &cli.ExitError{Code: exitUnknown, Err: err} }

// checkup checks the command line, runs the checks, and prints the report.
func checkup(a *cli.App, c *cobra.Command, f *doctorFlags, args []string) error {
	if err := a.Begin(c, a.Settings.Check, f.out.Check); err != nil {
		return err
	}
	switch {
	case f.held.D < 0:
		return cli.UsageError("--held is %v: give 0 or more", f.held.D)
	case c.Flags().Changed("every") && !f.watch:
		return cli.UsageError("--every applies to --watch: give both")
	case f.every.D < time.Second:
		return cli.UsageError("--every is %v: give at least 1s, because each run puts load on the servers", f.every.D)
	}
	prefix, err := cli.PrefixOf(c, args)
	if err != nil {
		return err
	}
	cfg, err := newConfig(&a.Settings, prefix, f)
	if err != nil {
		return err
	}
	if f.watch {
		return watchReports(&a.Settings, cfg, f)
	}
	r, err := examine(&a.Settings, context.Background(), cfg)
	if err != nil {
		return err
	}
	if err := f.out.Write(os.Stdout, shownReport(r)); err != nil {
		return err
	}
	if r.Exit != 0 {
		return &cli.ExitError{Code: r.Exit}
	}
	return nil
}

// watchReports repeats the checks until a signal, and prints each report that differs from
// the previous one.
func watchReports(s *cli.Settings, cfg Config, f *doctorFlags) error {
	signals := cli.TerminationSignals()
	defer signal.Stop(signals)
	ctx, stop := cli.Interruptible(signals, nil)
	defer stop()
	tick := time.NewTicker(f.every.D)
	defer tick.Stop()
	for last := (Report{}); ; {
		r, err := examine(s, ctx, cfg)
		if err != nil {
			return cli.Interrupted(ctx, err)
		}
		if !r.Like(last) {
			shows := shownReport(r)
			shows.Table = func(out io.Writer) error {
				if _, err := fmt.Fprintf(out, "-- %s\n", r.At.Local().Format(time.DateTime)); err != nil {
					return err
				}
				return r.Write(out, cli.OutputWidth(), colored())
			}
			if err := cli.UntilInterrupted(ctx, func() error { return f.out.Write(os.Stdout, shows) }); err != nil {
				return cli.Interrupted(ctx, err)
			}
		}
		last = r
		select {
		case <-ctx.Done():
			return cli.Interrupted(ctx, ctx.Err())
		case <-tick.C:
		}
	}
}

// examine runs a checkup, and keeps the highest transaction id for the next one.
func examine(s *cli.Settings, ctx context.Context, cfg Config) (Report, error) {
	if cfg.ZxidFile != "" {
		cfg.LastZxid = config.LastZxid(cfg.ZxidFile)
	}
	line := s.Progress("checking the servers and the locks below %s", legible.Name(cfg.Prefix))
	r, err := Run(ctx, cfg)
	line.Stop()
	if err == nil && cfg.ZxidFile != "" && r.Zxid > cfg.LastZxid {
		cfg.ZxidErr = config.RaiseZxid(cfg.ZxidFile, r.Zxid)
	}
	r.noteZxid(cfg.ZxidErr)
	return r, err
}

// zxidFile returns the file with the highest transaction id of the current context. Servers
// given by address have no name for a file: it then returns "". It returns an error if this
// user has no private directory.
func zxidFile(s *cli.Settings) (string, error) {
	name := s.From.Context
	if name == "" && s.Servers == "" {
		name = config.LocalContext
	}
	if name == "" {
		return "", nil
	}
	own, err := local.Own()
	if err == nil {
		err = local.Prepare(own.Dir)
	}
	if err != nil {
		return "", err
	}
	return config.ZxidFile(own.Dir, s.ContextID(name)), nil
}

// newConfig returns the configuration of the checks.
func newConfig(s *cli.Settings, prefix string, f *doctorFlags) (Config, error) {
	ctx, cancel := s.ConnectContext(context.Background())
	defer cancel()
	t, err := s.Target(ctx)
	if err != nil {
		return Config{}, err
	}
	// Findings name each server, but no error quotes an invalid string: users put passwords in it.
	if err := cli.CheckServers(t.Servers); err != nil {
		return Config{}, err
	}
	proof, err := s.Identity.Authentication()
	if err != nil {
		return Config{}, err
	}
	zxids, zxidErr := zxidFile(s)
	return Config{
		Servers: t.Servers, Prefix: prefix, ZxidFile: zxids, ZxidErr: zxidErr, Private: t.Local(), Layout: f.layout.Layout, Held: f.held.D, Limit: s.ConnectLimit(), Apart: time.Second,
		Zk: zk.Options{
			SessionTimeout: s.Session.D, DialContext: t.Dial(), Logger: s.Logger(),
			TLS: proof.TLS, Auth: proof.Auth, SASL: proof.SASL, MaxReply: cli.ReadReply,
		},
	}, nil
}

// shownReport returns a report in all output formats.
func shownReport(r Report) cli.Result {
	return cli.Result{
		Table: func(out io.Writer) error { return r.Write(out, cli.OutputWidth(), colored()) },
		Names: func() (subjects []string) {
			seen := map[string]bool{}
			for _, f := range r.Findings {
				if f.Level != OK && f.Level != Note && !seen[f.Check] {
					seen[f.Check] = true
					subjects = append(subjects, f.Check)
				}
			}
			return subjects
		},
		Data: func() []any { return []any{r} },
	}
}

// colored reports whether standard output gets colors, see no-color.org.
func colored() bool {
	return cli.ObeysSequences(1) && os.Getenv("NO_COLOR") == ""
}
