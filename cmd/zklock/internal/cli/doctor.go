package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zklock/zklock/cmd/zklock/internal/checkup"
	"github.com/zklock/zklock/cmd/zklock/internal/contexts"
	"github.com/zklock/zklock/cmd/zklock/internal/home"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/zk"
)

// exitUnknown is what monitoring takes for "it could not be looked at".
const exitUnknown = 3

const doctorHelp = `Doctor checks the servers and the locks below PREFIX, and reports each problem
with its solution. The default prefix is /zklock; --prefix is the same as the
argument.
  servers   which servers answer, and their roles; quorum, and whether
            all are of one ensemble; versions; the latency of reads,
            syncs, and writes
  timeout   the session timeout compared with the servers' bounds and
            with syncLimit x tickTime; the leader's clock
  rate      whether this machine's clock is slewed, or chrony may slew
            it, by more than locks assume; doctor cannot see the servers'
            clocks
  tokens    whether the last transaction ID, from which fencing tokens
            come, is smaller than the one that doctor last saw for this
            context
  access    what the ACLs permit to you and to others
  locks     recipes on one path that do not exclude each other, strays,
            entries that no client will remove, sequence numbers near
            their end, sessions with many locks, sessions that wait for
            each other (a deadlock over several locks), and locks that
            are held much longer than usual, or longer than --held

With --watch it repeats the check every minute, or at the interval of --every,
and prints the report when the problems have changed, until it is interrupted.
With -o name it prints the subjects that have problems.

Doctor changes nothing. If permitted, it creates one znode and deletes it in the
same transaction, which no client sees, to read the leader's clock. It opens one
session per server. It keeps the highest transaction ID of a context in the file
zxid-CONTEXT in the directory of the local server (ZKLOCK_HOME). It finds more
problems if the servers' whitelist of four-letter words contains conf and mntr.

Exit codes, as for monitoring plugins:
  0    no problem
  1    a warning
  2    critical
  3    a check failed, or wrong usage`

const doctorExample = `  zklock doctor
  zklock doctor --servers zk1,zk2,zk3 /apps/billing --held 1h
  zklock doctor --watch --every 10s
  zklock doctor -o json | jq -r '.findings[] | select(.level!="ok").what'`

// doctorFlags are those of doctor.
type doctorFlags struct {
	layout layoutValue
	held   span.Value
	out    output
	watch  bool
	every  span.Value
}

// doctorCommand is zklock doctor. All that goes wrong before there is a report is
// "unknown" to monitoring.
func (a *app) doctorCommand() *cobra.Command {
	f := doctorFlags{every: span.Value{D: time.Minute}}
	c := &cobra.Command{
		Use:     "doctor [PREFIX]",
		Short:   "Diagnose servers and locks",
		Long:    doctorHelp,
		Example: doctorExample,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return unknown(usage("zklock doctor takes one prefix, and got %d arguments", len(args)))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := a.checkup(c, &f, args)
			var e *exitError
			if err == nil || errors.As(err, &e) && e.Err == nil { // the report has told
				return err
			}
			return unknown(err)
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return unknown(flagError(c, err)) })
	a.serverFlags(c)
	a.prefixFlag(c)
	f.layout.flag(c)
	c.Flags().Var(&f.held, "held", "warn of locks held longer than this")
	f.out.flag(c)
	c.Flags().BoolVar(&f.watch, "watch", false, "repeat, and print the report when it changes")
	c.Flags().Var(&f.every, "every", "with --watch: time between checks")
	c.ValidArgsFunction = a.completeLocks
	offerNothing(c, "held", "every")
	return c
}

// unknown is an error that monitoring takes for "it could not be looked at".
func unknown(err error) error { return &exitError{exitUnknown, err} }

// checkup checks the command line, looks, and prints.
func (a *app) checkup(c *cobra.Command, f *doctorFlags, args []string) error {
	if err := a.begin(c); err != nil {
		return err
	}
	if err := a.set.check(c.Flags()); err != nil {
		return err
	}
	if err := f.out.check(c.Flags()); err != nil {
		return err
	}
	switch {
	case f.held.D < 0:
		return usage("--held is %v: give a time from 0 on", f.held.D)
	case c.Flags().Changed("every") && !f.watch:
		return usage("--every is about --watch: give both")
	case f.every.D < time.Second:
		return usage("--every is %v: give a time of 1s at least, each look is some work for the servers", f.every.D)
	}
	prefix, err := prefixOf(c, args)
	if err != nil {
		return err
	}
	cfg, err := a.set.patient(prefix, f)
	if err != nil {
		return err
	}
	if f.watch {
		return a.set.watchReports(cfg, f)
	}
	r, err := a.set.examine(context.Background(), cfg)
	if err != nil {
		return err
	}
	if err := f.out.write(os.Stdout, shownReport(r)); err != nil {
		return err
	}
	if r.Exit != 0 {
		return &exitError{Code: r.Exit}
	}
	return nil
}

// watchReports looks again and again, and prints each report that differs from the one
// before, until a signal.
func (s *settings) watchReports(cfg checkup.Config, f *doctorFlags) error {
	signals := endSignals()
	defer signal.Stop(signals)
	ctx, stop := interruptible(signals, nil)
	defer stop()
	tick := time.NewTicker(f.every.D)
	defer tick.Stop()
	for last := (checkup.Report{}); ; {
		r, err := s.examine(ctx, cfg)
		if err != nil {
			return interrupted(ctx, err)
		}
		if !r.Like(last) {
			shows := shownReport(r)
			shows.table = func(out io.Writer) error {
				if _, err := fmt.Fprintf(out, "-- %s\n", r.At.Local().Format(time.DateTime)); err != nil {
					return err
				}
				return r.Write(out, columns(), colored())
			}
			if err := f.out.write(os.Stdout, shows); err != nil {
				return err
			}
		}
		last = r
		select {
		case <-ctx.Done():
			return interrupted(ctx, ctx.Err())
		case <-tick.C:
		}
	}
}

// examine runs a checkup, and keeps the highest transaction id for the next one.
func (s *settings) examine(ctx context.Context, cfg checkup.Config) (checkup.Report, error) {
	if cfg.ZxidFile != "" {
		cfg.LastZxid = contexts.LastZxid(cfg.ZxidFile)
	}
	r, err := checkup.Run(ctx, cfg)
	if err == nil && cfg.ZxidFile != "" && r.Zxid > cfg.LastZxid {
		// What can't be kept is not compared; monitoring may run without a home.
		if err := contexts.RaiseZxid(cfg.ZxidFile, r.Zxid); err != nil && s.verbose {
			warn("%v", err)
		}
	}
	return r, err
}

// zxidFile returns where the highest transaction id of the context in use is kept, ""
// if there is none: servers that were named by their addresses have no name to keep it
// under, and some systems and users have no private directory.
func (s *settings) zxidFile() string {
	name := s.from.context
	if name == "" && s.servers == "" {
		name = contexts.Local
	}
	dir, err := home.Dir(home.Mine())
	if name == "" || err != nil || home.Prepare(dir) != nil {
		return ""
	}
	return contexts.ZxidFile(dir, name)
}

// patient is what to look at.
func (s *settings) patient(prefix string, f *doctorFlags) (checkup.Config, error) {
	ctx, cancel := s.bounded(context.Background())
	defer cancel()
	t, err := s.target(ctx)
	if err != nil {
		return checkup.Config{}, err
	}
	proof, err := s.who.proof()
	if err != nil {
		return checkup.Config{}, err
	}
	return checkup.Config{
		Servers: t.servers, Prefix: prefix, ZxidFile: s.zxidFile(), Layout: f.layout.Layout, Held: f.held.D, Limit: s.limit(), Apart: time.Second,
		Zk: zk.Options{
			SessionTimeout: s.session.D, DialContext: t.dial(), Logger: s.logger(),
			TLS: proof.tls, Auth: proof.Auth, SASL: proof.SASL,
		},
	}, nil
}

// shownReport is a report in all forms.
func shownReport(r checkup.Report) shown {
	return shown{
		table: func(out io.Writer) error { return r.Write(out, columns(), colored()) },
		names: func() (subjects []string) {
			seen := map[string]bool{}
			for _, f := range r.Findings {
				if f.Level != checkup.OK && f.Level != checkup.Note && !seen[f.Check] {
					seen[f.Check] = true
					subjects = append(subjects, f.Check)
				}
			}
			return subjects
		},
		data: func() []any { return []any{r} },
	}
}

// columns is how wide standard output is; 80 if it is no terminal.
func columns() int {
	if w, _, err := term.GetSize(1); err == nil && w > 0 {
		return w
	}
	return 80
}

// colored reports whether standard output is to have colors, see no-color.org.
func colored() bool {
	return term.IsTerminal(1) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
