package serverload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/zklock/zklock/bench/internal/load"
	"github.com/zklock/zklock/bench/internal/peer"
	"github.com/zklock/zklock/bench/internal/rounds"
)

// bench is one running comparison.
type bench struct {
	opts    Options
	kinds   []*peer.Kind
	plan    rounds.Plan
	table   *rounds.Table
	servers []*peer.Server // the servers under load, one of each kind
	payload []byte
}

// Run compares Apache ZooKeeper, or Options.Base, with the embedded server and returns the
// table. The error wraps [ErrInvalidOptions], names a server that cannot run, or wraps
// load.ErrAnswer if an answer cannot be right. Then there is no table.
func Run(ctx context.Context, opts Options) (*rounds.Table, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	base, err := peer.Java()
	if opts.Base != "" {
		base, err = peer.Embedded(ctx, "base", opts.Dir, opts.Base)
	}
	if err != nil {
		return nil, err
	}
	embedded, err := peer.Embedded(ctx, "zklock", opts.Dir, opts.Zklock)
	if err != nil {
		return nil, err
	}
	return compare(ctx, opts, base, embedded)
}

// compare is Run with servers of any kind.
func compare(ctx context.Context, opts Options, kinds ...*peer.Kind) (*rounds.Table, error) {
	// The load generator is one goroutine. With more than one processor, the Go runtime
	// moves it to another thread every 10 ms, and its threads that look for work use
	// processors that the servers need. The garbage collector runs within the measured
	// time, for all contenders alike.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b := &bench{opts: opts, kinds: kinds, payload: make([]byte, opts.Data)}
	b.plan = opts.Plan()
	for _, k := range kinds {
		b.plan.Contenders = append(b.plan.Contenders, k.Name)
	}
	b.table = rounds.NewTable(b.plan.Contenders, b.rows()...)
	if opts.Part != "start" {
		if err := b.underLoad(ctx); err != nil {
			return nil, err
		}
	}
	if opts.Part != "load" {
		if err := b.fromStart(ctx); err != nil {
			return nil, err
		}
	}
	b.table.Finish()
	return b.table, nil
}

// rows returns the lines of the table.
func (b *bench) rows() []rounds.Row {
	switch b.opts.Part {
	case "load":
		return b.loadRows()
	case "start":
		return b.startRows()
	}
	return append(b.loadRows(), b.startRows()...)
}

// loadRows returns the rows of underLoad.
func (b *bench) loadRows() []rounds.Row {
	var rows []rounds.Row
	for _, n := range b.opts.Clients {
		rows = append(rows, jobRows("create+delete", n)...)
	}
	for _, n := range b.opts.Clients {
		rows = append(rows, jobRows("getData", n)...)
	}
	return append(rows, rounds.Row{Name: b.fanoutRow(), Unit: "ms"}, rounds.Row{Name: loadedRow, Unit: "MiB", Goal: 0.1})
}

// underLoad measures servers that have run for a while.
func (b *bench) underLoad(ctx context.Context) (err error) {
	defer func() {
		for _, s := range b.servers {
			s.Kill()
		}
	}()
	for _, k := range b.kinds {
		s, err := peer.New(k, filepath.Join(b.opts.Dir, "load-"+k.Name))
		if err != nil {
			return err
		}
		if _, err := s.Start(); err != nil {
			return err
		}
		b.servers = append(b.servers, s)
		if err := b.prepare(s); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	for round := range b.opts.Rounds {
		if err := b.loadRound(ctx, round); err != nil {
			return err
		}
	}
	return nil
}

// The nodes of the load.
const (
	pairsPath = "/pairs"
	readPath  = "/read"
	watchPath = "/watched"
)

// prepare creates the nodes and warms up a server.
func (b *bench) prepare(s *peer.Server) error {
	c, err := load.Dial(s.Addr)
	if err != nil {
		return err
	}
	for _, path := range []string{pairsPath, readPath, watchPath} {
		if err := c.Create(path, b.payload); err != nil {
			return err
		}
	}
	if err := c.Close(); err != nil {
		return err
	}
	const clients = 16
	if _, err := b.pairs(s, clients, b.opts.Warm/2); err != nil {
		return err
	}
	_, err = b.reads(s, clients, b.opts.Warm/2)
	return err
}

// pids returns the ids of the measured processes.
func (b *bench) pids() []int {
	var pids []int
	for _, s := range b.servers {
		pids = append(pids, s.PID())
	}
	return pids
}

// remove deletes a server's files.
func remove(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("serverload: %w", err)
	}
	return nil
}
