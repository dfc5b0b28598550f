package serverload

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/zklock/zklock/bench/internal/load"
	"github.com/zklock/zklock/bench/internal/peer"
	"github.com/zklock/zklock/bench/internal/rounds"
)

// Names of rows.
const (
	startEmptyRow  = "start, empty directory"
	startFullRow   = "start, all znodes"
	rssStartRow    = "RSS after start"
	rssSessionsRow = "RSS with all sessions"
	rssNodesRow    = "RSS with all znodes"
	rssRestartRow  = "RSS after start, all znodes"
	perSessionRow  = "RSS per session"
	perNodeRow     = "RSS per znode"
	liveSessionRow = "live heap per session"
	liveNodeRow    = "live heap per znode"
)

// nodesPath is the parent of the znodes whose memory is measured.
const nodesPath = "/nodes"

// startRows returns the rows of fromStart.
func (b *bench) startRows() []rounds.Row {
	return []rounds.Row{
		{Name: startEmptyRow, Unit: "ms"},
		{Name: startFullRow, Unit: "ms"},
		{Name: rssStartRow, Unit: "MiB", Goal: 0.1},
		{Name: rssSessionsRow, Unit: "MiB", Goal: 0.1},
		{Name: rssNodesRow, Unit: "MiB", Goal: 0.1},
		{Name: rssRestartRow, Unit: "MiB", Goal: 0.1},
		{Name: perSessionRow, Unit: "B"},
		{Name: perNodeRow, Unit: "B"},
		{Name: liveSessionRow, Unit: "B"},
		{Name: liveNodeRow, Unit: "B"},
	}
}

// fromStart measures new servers from their start, in each round.
func (b *bench) fromStart(ctx context.Context) error {
	for round := range b.opts.Rounds {
		err := b.plan.One("start and memory", round, nil, func(contender int) (rounds.Sample, error) {
			return b.measureStart(ctx, b.kinds[contender])
		}, b.table)
		if err != nil {
			return err
		}
	}
	return nil
}

// measureStart measures one server: with an empty directory, with sessions, with znodes, and
// during a restart after a crash, which recovers all znodes.
func (b *bench) measureStart(ctx context.Context, kind *peer.Kind) (sample rounds.Sample, err error) {
	dir := filepath.Join(b.opts.Dir, "start-"+kind.Name)
	s, err := peer.New(kind, dir)
	if err != nil {
		return nil, err
	}
	defer func() { s.Kill(); err = errors.Join(err, remove(dir)) }()
	sample = rounds.Sample{}
	took, err := s.Start()
	if err != nil {
		return nil, err
	}
	sample[startEmptyRow] = millis(took)
	if err := b.grow(ctx, s, sample); err != nil {
		return nil, err
	}
	s.Kill()
	if took, err = s.Start(); err != nil {
		return nil, err
	}
	sample[startFullRow] = millis(took)
	again, err := b.measure(ctx, s)
	if err != nil {
		return nil, err
	}
	sample[rssRestartRow] = mib(again.rss)
	return sample, b.complete(s)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// footprint is a server's memory at one moment.
type footprint struct {
	rss, live int64
	hasLive   bool
}

// measure returns the footprint after a rest. It reads the resident memory first, because
// measuring the live objects can return memory to the system.
func (b *bench) measure(ctx context.Context, s *peer.Server) (f footprint, err error) {
	select {
	case <-time.After(b.opts.Rest):
	case <-ctx.Done():
		return f, ctx.Err()
	}
	if f.rss, err = s.RSS(); err != nil {
		return f, err
	}
	f.live, f.hasLive, err = s.Live(ctx)
	return f, err
}

// per adds the memory that each of n objects needs, from the difference of two footprints.
func per(sample rounds.Sample, rssRow, liveRow string, before, after footprint, n int) {
	sample[rssRow] = float64(after.rss-before.rss) / float64(n)
	if after.hasLive {
		sample[liveRow] = float64(after.live-before.live) / float64(n)
	}
}

// grow gives a new server sessions and then znodes, and measures its memory.
func (b *bench) grow(ctx context.Context, s *peer.Server, sample rounds.Sample) error {
	fresh, err := b.measure(ctx, s)
	if err != nil {
		return err
	}
	g, err := load.Open(s.Addr, b.opts.Sessions)
	if err != nil {
		return err
	}
	withSessions, err := b.measure(ctx, s)
	if err := errors.Join(err, g.Close()); err != nil {
		return err
	}
	c, err := load.Dial(s.Addr)
	if err != nil {
		return err
	}
	before, err := b.measure(ctx, s)
	if err != nil {
		return err
	}
	if err := errors.Join(c.Create(nodesPath, nil), c.Fill(nodesPath, b.opts.Nodes, b.payload)); err != nil {
		return err
	}
	full, err := b.measure(ctx, s)
	if err := errors.Join(err, c.Close()); err != nil {
		return err
	}
	sample[rssStartRow], sample[rssSessionsRow], sample[rssNodesRow] = mib(fresh.rss), mib(withSessions.rss), mib(full.rss)
	per(sample, perSessionRow, liveSessionRow, fresh, withSessions, b.opts.Sessions)
	per(sample, perNodeRow, liveNodeRow, before, full, b.opts.Nodes)
	return nil
}

// complete checks that a server that crashed has every znode.
func (b *bench) complete(s *peer.Server) error {
	c, err := load.Dial(s.Addr)
	if err != nil {
		return err
	}
	n, err := c.Children(nodesPath)
	if err := errors.Join(err, c.Close()); err != nil {
		return err
	}
	if n != b.opts.Nodes {
		return fmt.Errorf("%w: %d znodes of %d after a crash", load.ErrAnswer, n, b.opts.Nodes)
	}
	return nil
}
