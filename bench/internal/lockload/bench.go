package lockload

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	contenders "github.com/zklock/zklock/bench/internal/contender"
	"github.com/zklock/zklock/bench/internal/lockwork"
	"github.com/zklock/zklock/bench/internal/rounds"
)

// idleTurns limits the repetitions of a measurement without a completed cycle.
const idleTurns = 3

// drainRounds is the largest number of times that a queue is drained, because each time
// takes thousands of sessions.
const drainRounds = 3

// floor is the library without locks: create and delete.
const floor = "floor"

// A contender is a library on a server, which is a column of the table.
type contender struct {
	library, server string
	make            contenders.Make
	process         *contenders.Process
	// lacks has the jobs that the library cannot do.
	lacks map[string]bool
}

// name returns the name of the column.
func (c *contender) name() string {
	if c.server == onJava || c.library == c.server || c.server == onRedis {
		return c.library
	}
	return c.library + ", " + c.server
}

// measured is the outcome of one run.
type measured struct {
	contenders.Measured
	requests int64
}

// bench is one running comparison.
type bench struct {
	opts    Options
	jobs    []job
	columns []*contender
	servers map[string]*server
	notes   []string
	runs    int // number of runs: each run has its own paths
}

// Run compares all libraries and returns the table. If it fails after the first round, it
// also returns the results until then, unless mutual exclusion was violated. The error wraps
// [ErrInvalidOptions], names a program that is not installed or a contender that failed, or wraps
// contender.ErrViolation.
func Run(ctx context.Context, opts Options) (*rounds.Table, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	b := &bench{opts: opts, jobs: opts.jobs(), servers: make(map[string]*server)}
	defer b.stop()
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	plan := opts.Plan()
	for _, c := range b.columns {
		plan.Contenders = append(plan.Contenders, c.name())
	}
	table := rounds.NewTable(plan.Contenders, rowsOf(b.jobs)...)
	if err := b.warm(); err != nil {
		return nil, err
	}
	for round := range opts.Rounds {
		for i := range b.jobs {
			j := &b.jobs[i]
			if j.work.Time == 0 && round >= drainRounds {
				continue
			}
			err := plan.One(j.name, round, b.pids(), func(c int) (rounds.Sample, error) {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				return b.trial(b.columns[c], j)
			}, table)
			if err != nil {
				if round == 0 || errors.Is(err, contenders.ErrViolation) {
					return nil, err
				}
				return b.finish(table), err
			}
		}
	}
	return b.finish(table), nil
}

// finish completes a table.
func (b *bench) finish(table *rounds.Table) *rounds.Table {
	table.Notes = b.notes
	table.Finish()
	return table
}

// start starts the servers and contenders.
func (b *bench) start(ctx context.Context) error {
	all, err := b.opts.columns(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if !chosen(b.opts.Columns, c.name()) {
			continue
		}
		if b.servers[c.server] == nil {
			if b.servers[c.server], err = b.opts.start(ctx, c.server); err != nil {
				return err
			}
		}
		if c.process, err = contenders.Start(c.make.Command(), b.opts.Log); err != nil {
			return err
		}
		b.columns = append(b.columns, c)
	}
	if len(b.columns) == 0 {
		return fmt.Errorf("%w: no contender's name contains one of Columns %q", ErrInvalidOptions, b.opts.Columns)
	}
	return nil
}

// columns returns all contenders.
func (o *Options) columns(ctx context.Context) ([]*contender, error) {
	curator, err := contenders.Curator(ctx, filepath.Join(o.Dir, "curator"))
	if err != nil {
		return nil, err
	}
	kazoo, err := contenders.Kazoo(filepath.Join(o.Dir, "kazoo"))
	if err != nil {
		return nil, err
	}
	columns := []*contender{{library: curator.Name, server: onJava, make: curator}, {library: kazoo.Name, server: onJava, make: kazoo}}
	for _, c := range [][2]string{
		{"zklock", onJava}, {"go-zookeeper", onJava}, {floor, onJava}, {"zklock", onEmbedded},
		{"zklock", onEnsemble}, {"go-zookeeper", onEnsemble}, {"etcd", onEtcd}, {"redsync", onRedis},
	} {
		m, err := contenders.Go(c[0])
		if err != nil {
			return nil, err
		}
		columns = append(columns, &contender{library: c[0], server: c[1], make: m})
	}
	// zklock is first, because the ratios are relative to the first column.
	slices.SortStableFunc(columns, func(a, b *contender) int { return rank(a) - rank(b) })
	for _, c := range columns {
		c.lacks = make(map[string]bool)
	}
	return columns, nil
}

// rank returns 0 for the contender with which the others are compared.
func rank(c *contender) int {
	if c.library == "zklock" && c.server == onJava {
		return 0
	}
	return 1
}

// stop ends all servers and contenders.
func (b *bench) stop() {
	for _, c := range b.columns {
		c.process.Stop()
	}
	for _, s := range b.servers {
		if s != nil {
			s.kill()
		}
	}
}

// pids returns the ids of the measured processes.
func (b *bench) pids() []int {
	var pids []int
	for _, c := range b.columns {
		pids = append(pids, c.process.PID())
	}
	for _, s := range b.servers {
		pids = append(pids, s.pids...)
	}
	return pids
}

// warm makes each contender work before the first round.
func (b *bench) warm() error {
	for _, c := range b.columns {
		for _, w := range []lockwork.Work{
			{Kind: lockwork.Mutex, Sessions: 1, Workers: 64, Locks: 64},
			{Kind: lockwork.Mutex, Sessions: 10, Workers: 10, Locks: 1},
		} {
			if c.library == floor {
				w.Sessions, w.Workers, w.Locks = 1, 1, 1
			}
			w.Time = max(b.opts.Warm/2, time.Millisecond)
			if _, err := b.do(c, w); err != nil && !errors.Is(err, lockwork.ErrUnsupported) {
				return fmt.Errorf("%s: %w", c.name(), err)
			}
		}
	}
	return nil
}

// trial measures a job with a contender. The sample is empty if the contender does not
// support the job.
func (b *bench) trial(c *contender, j *job) (rounds.Sample, error) {
	if !j.on(c) || c.lacks[j.name] {
		return nil, nil
	}
	m, err := b.do(c, j.work)
	// On a busy machine, a short turn may end before a long queue begins to move.
	for try := 0; errors.Is(err, lockwork.ErrNothing) && try < idleTurns; try++ {
		m, err = b.do(c, j.work)
	}
	if errors.Is(err, lockwork.ErrUnsupported) {
		c.lacks[j.name] = true
		return nil, nil
	}
	if err != nil && c.library != "zklock" && !errors.Is(err, contenders.ErrViolation) && c.process.Alive() {
		// An unsupported job must not end the comparison of the other jobs.
		c.lacks[j.name] = true
		b.notes = append(b.notes, fmt.Sprintf("%s failed in %q: %v", c.name(), j.name, err))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return j.sample(m), nil
}

// do makes a contender do a work on its own paths.
func (b *bench) do(c *contender, w lockwork.Work) (m measured, err error) {
	b.runs++
	w.Path = fmt.Sprintf("/bench-%d", b.runs)
	s := b.servers[c.server]
	var before, after int64
	if s.received != nil {
		if before, err = s.received(); err != nil {
			return m, err
		}
	}
	if m.Measured, err = c.process.Do(s.addr, w); err != nil {
		return m, err
	}
	if s.received != nil {
		if after, err = s.received(); err != nil {
			return m, err
		}
	}
	m.requests = after - before
	return m, nil
}
