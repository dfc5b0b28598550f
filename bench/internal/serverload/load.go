package serverload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock/bench/internal/load"
	"github.com/zklock/zklock/bench/internal/peer"
	"github.com/zklock/zklock/bench/internal/proc"
	"github.com/zklock/zklock/bench/internal/rounds"
)

// loadedRow is the memory of the servers after all the load.
const loadedRow = "RSS after load"

// jobRows returns the rows of one job with a number of clients. Goals apply to the latency
// of one client and the throughput of many.
func jobRows(job string, clients int) []rounds.Row {
	name := fmt.Sprintf("%s, %d clients", job, clients)
	rows := []rounds.Row{
		{Name: name, Unit: "requests/s", More: true},
		{Name: name + ", p50", Unit: "us"},
		{Name: name + ", p99", Unit: "us"},
		{Name: name + ", server CPU", Unit: "us/request"},
	}
	if clients == 1 {
		rows[1].Goal = 1
	} else {
		rows[0].Goal = 2
	}
	return rows
}

// fanoutRow returns the name of the row of watches.
func (b *bench) fanoutRow() string {
	return fmt.Sprintf("setData to the last of %d events", b.opts.Watchers)
}

// loadRound measures every job once on every server.
func (b *bench) loadRound(ctx context.Context, round int) error {
	type job func(s *peer.Server, clients int, d time.Duration) (load.Result, error)
	for _, j := range []struct {
		name string
		run  job
	}{{"create+delete", b.pairs}, {"getData", b.reads}} {
		for _, clients := range b.opts.Clients {
			name := fmt.Sprintf("%s, %d clients", j.name, clients)
			if err := b.trial(ctx, name, round, func(s *peer.Server) (rounds.Sample, error) {
				return timed(s, name, func() (load.Result, error) { return j.run(s, clients, b.opts.Turn) })
			}); err != nil {
				return err
			}
		}
	}
	return b.trial(ctx, b.fanoutRow(), round, b.fanout)
}

// trial does one round of one row.
func (b *bench) trial(ctx context.Context, name string, round int, f func(*peer.Server) (rounds.Sample, error)) error {
	return b.plan.One(name, round, b.pids(), func(contender int) (rounds.Sample, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return f(b.servers[contender])
	}, b.table)
}

// timed measures one job and its cost to the server.
func timed(s *peer.Server, name string, run func() (load.Result, error)) (rounds.Sample, error) {
	before, err := proc.CPUTime(s.PID())
	if err != nil {
		return nil, err
	}
	res, err := run()
	if err != nil {
		return nil, err
	}
	after, err := proc.CPUTime(s.PID())
	if err != nil {
		return nil, err
	}
	return rounds.Sample{
		name:                  res.Rate(),
		name + ", p50":        micros(res.Percentile(0.5)),
		name + ", p99":        micros(res.Percentile(0.99)),
		name + ", server CPU": micros(after-before) / float64(res.Requests),
	}, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// pairs measures creates and deletes. The server's transaction ids confirm the number of
// answered writes.
func (b *bench) pairs(s *peer.Server, clients int, d time.Duration) (res load.Result, err error) {
	witness, err := load.Dial(s.Addr)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, witness.Close()) }()
	job := load.NewPairs(pairsPath, clients)
	res, err = withGroup(s, clients, func(g *load.Group) (load.Result, error) {
		before, err := witness.LastZxid()
		if err != nil {
			return load.Result{}, err
		}
		res, err := g.Run(job, d)
		if err != nil {
			return res, err
		}
		after, err := witness.LastZxid()
		if err == nil && after-before != int64(job.Writes) {
			err = fmt.Errorf("%w: %d writes were answered, the server's last transaction grew by %d", load.ErrAnswer, job.Writes, after-before)
		}
		return res, err
	})
	if err != nil {
		return res, err
	}
	left, err := witness.Children(pairsPath)
	if err == nil && left != 0 {
		err = fmt.Errorf("%w: %d nodes are left", load.ErrAnswer, left)
	}
	return res, err
}

// reads measures reads of one node.
func (b *bench) reads(s *peer.Server, clients int, d time.Duration) (load.Result, error) {
	return withGroup(s, clients, func(g *load.Group) (load.Result, error) {
		return g.Run(load.NewReads(readPath, b.payload), d)
	})
}

// withGroup calls f with sessions that it opens before and closes after the measured time.
func withGroup(s *peer.Server, clients int, f func(*load.Group) (load.Result, error)) (load.Result, error) {
	g, err := load.Open(s.Addr, clients)
	if err != nil {
		return load.Result{}, err
	}
	res, err := f(g)
	return res, errors.Join(err, g.Close())
}

// fanoutTurns is the number of times that all watches fire in one round.
const fanoutTurns = 20

// fanout measures the time until a change reaches all watchers and, at the end of the round, the
// server's memory.
func (b *bench) fanout(s *peer.Server) (rounds.Sample, error) {
	var times []float64
	_, err := withGroup(s, b.opts.Watchers+1, func(g *load.Group) (load.Result, error) {
		job := load.NewFanout(watchPath, g.Size())
		for range fanoutTurns {
			job.Arm()
			if _, err := g.RunUntil(job, func() bool { return true }); err != nil {
				return load.Result{}, err
			}
			job.Fire()
			took, err := g.RunUntil(job, job.Done)
			if err != nil {
				return load.Result{}, err
			}
			times = append(times, float64(took.Microseconds())/1000)
		}
		return load.Result{}, nil
	})
	if err != nil {
		return nil, err
	}
	rss, err := s.RSS()
	return rounds.Sample{b.fanoutRow(): rounds.Median(times), loadedRow: mib(rss)}, err
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
