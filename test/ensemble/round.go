package ensemble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/test/stall"
	"github.com/zklock/zklock/test/storm"
)

// How many processes contend, and goroutines of each for one kind of lock.
const (
	workerCount = 4
	eachKind    = 2
)

// endWait bounds the wait for workers to rest and to end.
const endWait = 2 * time.Minute

// round is some faults over some kinds of locks, with what is needed to judge it.
type round struct {
	tb       testing.TB
	ensemble *Ensemble
	kinds    []kinds.Kind
	dir      string
	seed     uint64
	resource *storm.Resource
	workers  []*storm.Worker
	names    *int // how many lives there were, in all rounds
	logs     map[string]*log
}

// log is the history of one kind of lock that this process writes: what it does to
// the workers.
type log struct {
	file *os.File
	rec  *history.Recorder
}

// begin starts the workers of a round, with its histories in dir.
func begin(tb testing.TB, e *Ensemble, of []kinds.Kind, dir string, seed uint64, names *int) *round {
	tb.Helper()
	r := &round{tb: tb, ensemble: e, kinds: of, dir: dir, seed: seed, names: names, logs: map[string]*log{}}
	// A socket's path has to be short, whatever the test is called.
	short, err := os.MkdirTemp("", "zke")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(short) })
	if r.resource, err = storm.Listen(filepath.Join(short, "s")); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.resource.Close)
	for _, k := range of {
		if err := os.MkdirAll(filepath.Join(dir, k.Name), 0o700); err != nil {
			tb.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, k.Name, "ensemble.jsonl"))
		if err != nil {
			tb.Fatal(err)
		}
		r.logs[k.Name] = &log{file: f, rec: history.RecordTo(f, "ensemble", seed, 1)}
	}
	for range workerCount {
		w, err := r.spawn()
		if err != nil {
			tb.Fatal(err)
		}
		r.workers = append(r.workers, w)
	}
	return r
}

// spawn starts a worker.
func (r *round) spawn() (*storm.Worker, error) {
	*r.names++
	o := storm.Orders{
		Name: fmt.Sprintf("w%d", *r.names), Number: *r.names, Servers: r.ensemble.cluster.ConnectString(), Timeout: timeout,
		Each: eachKind, Dir: r.dir, Resource: r.resource.Addr(), Seed: r.seed<<16 + uint64(*r.names),
	}
	for _, k := range r.kinds {
		o.Kinds = append(o.Kinds, k.Name)
	}
	w, err := storm.Begin(o)
	if err == nil {
		r.tb.Cleanup(w.Kill)
	}
	return w, err
}

// finish heals everything, has who waits be granted and everybody rest, looks for
// what is left behind, ends the workers, and judges.
func (r *round) finish(ctx context.Context, sum *storm.Totals) {
	r.tb.Helper()
	if err := r.ensemble.heal(ctx); err != nil {
		r.tb.Error(err)
	}
	late := stall.Watch(ctx)
	for _, log := range r.logs {
		log.rec.Healed()
	}
	rest(ctx, timeout/2)
	r.calm(ctx)
	held := late()
	leak := storm.LeftBehind(ctx, r.ensemble.cluster.ConnectString(), timeout, r.kinds)
	if leak != nil {
		r.tb.Error(leak)
	}
	if errors.Is(leak, storm.ErrLeft) {
		sum.Violations++
	}
	r.end(ctx)
	for _, k := range r.kinds {
		r.judge(k, held, sum)
	}
	if _, refused, stale := r.resource.Counts(); refused != stale {
		r.tb.Errorf("the resource refused %d of %d stale writes", refused, stale)
		sum.Violations++
	}
	sum.Rounds++
}

// calm tells all workers to rest, and waits until every acquire that was begun has
// been granted or given up.
func (r *round) calm(ctx context.Context) {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	var words []<-chan error
	for _, w := range r.workers {
		word, err := w.Rest()
		if err != nil {
			r.tb.Errorf("%s: %v; it says:\n%s", w.Orders().Name, err, w.Said())
		}
		words = append(words, word)
	}
	for i, w := range r.workers {
		select {
		case err := <-words[i]:
			if err != nil {
				r.tb.Errorf("%s: %v; it says:\n%s", w.Orders().Name, err, w.Said())
			}
		case <-ctx.Done():
			r.tb.Errorf("%s does not come to rest; it says:\n%s", w.Orders().Name, w.Stacks())
		}
	}
}

// end ends all workers and the histories.
func (r *round) end(ctx context.Context) {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	for _, w := range r.workers {
		if err := w.End(ctx); err != nil {
			r.tb.Errorf("%s: %v; it says:\n%s", w.Orders().Name, err, w.Said())
		}
	}
	for name, log := range r.logs {
		if err := errors.Join(log.rec.Err(), log.file.Close()); err != nil {
			r.tb.Errorf("%s: %v", name, err)
		}
	}
	r.resource.Close()
}

// judge judges what was written down about a kind of lock. A session whose last
// connection was to a leader that is no more gets its full timeout from the next.
func (r *round) judge(k kinds.Kind, late time.Duration, sum *storm.Totals) {
	r.tb.Helper()
	v, err := storm.Judge(k, r.dir, r.seed, timeout, late+2*tick)
	if err != nil {
		r.tb.Errorf("%s: %v", k.Name, err)
		return
	}
	sum.Add(v)
	for i, text := range v.Violations {
		if i == 10 {
			r.tb.Errorf("... and %d more", len(v.Violations)-i)
			break
		}
		r.tb.Errorf("%s, seed %d, in %s: %s", k.Name, r.seed, r.dir, text)
	}
}
