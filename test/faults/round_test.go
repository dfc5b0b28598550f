package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zktest"
)

// endWait bounds the wait for workers to rest and to exit. Releases, reconnects, and leaks
// have shorter limits.
const endWait = 5 * time.Minute

// A round is some kinds of locks under load while faults happen.
type round struct {
	tb       testing.TB
	server   *Server
	operator *operator
	kinds    []Kind
	dir      string // of the histories
	seed     uint64
	relays   []*zktest.Relay // between the clients and the server; none for an ensemble
	resource *Resource
	workers  []*worker
	names    *int          // the number of workers that all rounds have started
	change   func(*Orders) // changes the orders of every worker; may be nil
	stale    int           // stale writes in earlier rounds
	logs     map[string]*log
	// diverged is set if the servers' data differ, which is a defect of the servers. The
	// round's histories are not checked then.
	diverged bool
}

// log is the history of the faults for one kind of lock.
type log struct {
	file *os.File // nil if the history is in memory
	rec  *model.Recorder
}

// newRound returns a round without workers. Its histories are in dir.
func newRound(r *Run, kinds []Kind, dir string, seed uint64) *round {
	r.tb.Helper()
	// The path of a socket must be short, so it cannot contain the test's name.
	short, err := os.MkdirTemp("", "zkf")
	if err != nil {
		r.tb.Fatal(err)
	}
	s := &round{
		tb: r.tb, server: r.server, operator: r.operator, kinds: kinds, dir: dir, relays: r.relays, names: &r.names, seed: seed,
		stale: r.Totals.Done.Stale, logs: map[string]*log{},
	}
	if s.resource, err = Listen(filepath.Join(short, "s")); err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() {
		s.resource.Close()
		_ = os.RemoveAll(short)
	})
	for _, k := range kinds {
		if err := os.MkdirAll(filepath.Join(dir, k.Name), 0o700); err != nil {
			r.tb.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, k.Name, "faults.jsonl"))
		if err != nil {
			r.tb.Fatal(err)
		}
		s.logs[k.Name] = &log{file: f, rec: model.RecordTo(f, "faults", seed, 1)}
	}
	return s
}

// start starts all workers.
func (s *round) start(ctx context.Context) {
	s.tb.Helper()
	if err := s.operator.prepareGuard(ctx, s.kinds); err != nil {
		s.tb.Fatal(err)
	}
	for i := range s.server.Workers {
		s.workers = append(s.workers, s.spawn(i))
	}
}

// spawn starts the i-th worker, or its successor.
func (s *round) spawn(i int) *worker {
	s.tb.Helper()
	*s.names++
	o := Orders{
		Name: fmt.Sprintf("w%d", *s.names), Number: *s.names, Servers: s.server.Addr, Timeout: s.server.Timeout,
		Dir: s.dir, Resource: s.resource.Addr(), Seed: s.seed<<16 + uint64(*s.names),
	}
	if len(s.relays) > 0 {
		o.Servers = s.relays[i].Addr()
	}
	for _, k := range s.kinds {
		o.Kinds = append(o.Kinds, k.Name)
	}
	if s.change != nil {
		s.change(&o)
	}
	w, err := startWorker(o)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(w.Kill)
	select { // inject no fault before the worker runs
	case err := <-w.ready:
		if err != nil {
			s.tb.Fatalf("worker %s: %v; its log:\n%s", o.Name, err, w.log())
		}
	case <-time.After(endWait):
		s.tb.Fatalf("worker %s does not start; its log:\n%s", o.Name, w.stacks())
	}
	return w
}

// failed reports a worker's failure.
func (s *round) failed(w *worker, err error) {
	s.tb.Helper()
	if err != nil && !s.diverged {
		s.tb.Errorf("worker %s: %v; its log:\n%s", w.orders.Name, err, w.log())
	}
}

// kill kills a worker and starts its successor.
func (s *round) kill(i int) {
	w := s.workers[i]
	select {
	case <-w.Done():
		s.failed(w, errors.New("it has exited"))
	default:
	}
	for _, log := range s.logs {
		log.rec.Killing(w.orders.Name)
	}
	w.Kill()
	s.workers[i] = s.spawn(i)
}

// signal sends a signal to a worker, and reports whether the worker runs.
func (s *round) signal(i int, sig syscall.Signal) bool {
	err := s.workers[i].Signal(sig)
	s.failed(s.workers[i], err)
	return err == nil
}

// heal ends all faults and records their end.
func (s *round) heal(ctx context.Context) {
	s.tb.Helper()
	if s.server.Heal != nil {
		if err := s.server.Heal(ctx); err != nil {
			s.tb.Error(err)
		}
	}
	for _, log := range s.logs {
		log.rec.Healed()
	}
}

// rest tells all workers to rest, and waits until each has finished its acquires and
// released its holds.
func (s *round) rest(ctx context.Context) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	for _, w := range s.workers {
		_, err := io.WriteString(w.stdin, "rest\n")
		s.failed(w, err)
	}
	for _, w := range s.workers {
		select {
		case err := <-w.resting:
			s.failed(w, err)
		case <-ctx.Done():
			if s.haveDiverged() {
				w.Kill()
				continue
			}
			s.tb.Errorf("worker %s does not come to rest; its log:\n%s", w.orders.Name, w.stacks())
		}
	}
}

// haveDiverged reports whether the servers' data differ although all servers serve. In
// versions of ZooKeeper before 3.9.4, servers may diverge if they are killed around an
// election (ZOOKEEPER-4712).
func (s *round) haveDiverged() bool {
	s.tb.Helper()
	if s.server.Ensemble == nil || s.diverged {
		return s.diverged
	}
	ctx, cancel := context.WithTimeout(context.Background(), operatorWait)
	defer cancel()
	all, err := s.server.Ensemble.differences(ctx, s.roots())
	if len(all) > 0 { // the servers may not have caught up yet
		harness.Sleep(ctx, s.server.Timeout)
		var again []string
		again, err = s.server.Ensemble.differences(ctx, s.roots())
		all = slices.DeleteFunc(all, func(d string) bool { return !slices.Contains(again, d) })
	}
	if err != nil {
		s.tb.Errorf("%s: comparing the servers: %v", s.server.Name, err)
	}
	if s.diverged = len(all) > 0; s.diverged {
		s.tb.Logf("%s: THE SERVERS' DATA DIFFER, SO THIS ROUND IS NOT CHECKED:\n%s", s.server.Name, strings.Join(all, "\n"))
	}
	return s.diverged
}

// end ends all workers and the histories.
func (s *round) end(ctx context.Context) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	var all sync.WaitGroup
	for _, w := range s.workers {
		all.Go(func() { // ends with the worker, or with ctx
			s.failed(w, w.stdin.Close())
			select {
			case <-w.Done():
				s.failed(w, w.Wait())
			case <-ctx.Done():
				s.tb.Errorf("worker %s does not exit; its log:\n%s", w.orders.Name, w.stacks())
			}
		})
	}
	all.Wait()
	for name, log := range s.logs {
		if err := errors.Join(log.rec.Err(), log.file.Close()); err != nil {
			s.tb.Errorf("%s: %v", name, err)
		}
	}
	s.resource.Close()
}

// finish ends all faults, waits until all workers rest, checks for entries that they left on
// the server, ends the workers, and checks the histories.
func (s *round) finish(ctx context.Context, sum *Totals) {
	s.tb.Helper()
	s.heal(ctx)
	stalls := harness.WatchStalls(ctx)
	// The waiters must be granted while other clients continue, and then without them.
	harness.Sleep(ctx, s.server.Timeout/2)
	s.rest(ctx)
	late := stalls() + s.server.Slack
	if !s.diverged {
		s.check(ctx, sum, late)
	}
	s.end(ctx)
	if s.diverged {
		return
	}
	for _, k := range s.kinds {
		v, err := judgeFiles(k, s.dir, s.seed, s.server.Timeout, late)
		if err != nil {
			s.tb.Errorf("%s: %s: %v", s.server.Name, k.Name, err)
			continue
		}
		sum.Add(v)
		v.report(s.tb, fmt.Sprintf("%s: %s, seed %d, in %s", s.server.Name, k.Name, s.seed, s.dir))
	}
	if took, refused, stale := s.resource.Counts(); refused != stale {
		s.tb.Errorf("%s: the resource applied %d writes, refused %d of %d stale writes", s.server.Name, took, refused, stale)
		sum.Violations++
	}
	sum.Rounds++
}

// check checks for entries that the resting clients left on the server, and for guarded
// writes in a wrong order. late is the time for which the machine stalled.
func (s *round) check(ctx context.Context, sum *Totals, late time.Duration) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	for _, k := range s.kinds {
		guarded, err := s.operator.checkGuarded(ctx, k)
		for _, n := range guarded {
			sum.Guarded += n
		}
		if err == nil && k.Delayed {
			// The records of lost holds stay until the next acquire.
			err = acquireOnce(ctx, s.server, k)
		}
		if err != nil {
			s.tb.Errorf("%s: %s: %v", s.server.Name, k.Name, err)
		}
		if errors.Is(err, errOrder) {
			sum.Violations++
		}
	}
	// The session of a killed worker, or one whose close was not confirmed, expires after a
	// timeout and two ticks.
	if err := s.operator.waitEmpty(ctx, s.roots(), 2*s.server.Timeout+4*s.server.Tick+late); err != nil && !s.haveDiverged() {
		s.tb.Errorf("%s: %v", s.server.Name, err)
		if errors.Is(err, errLeft) {
			sum.Violations++
		}
	}
}

// roots returns the parents of the round's locks.
func (s *round) roots() (all []string) {
	for _, k := range s.kinds {
		all = append(all, "/"+k.Name)
	}
	return all
}

// acquireOnce acquires and releases a kind's lock.
func acquireOnce(ctx context.Context, server *Server, kind Kind) error {
	c, err := kind.dial(ctx, server.Addr, zklock.Options{SessionTimeout: server.Timeout, DialContext: server.DialContext})
	if err != nil {
		return err
	}
	l, _ := kind.Lock(c, lockPath(kind.Name), 0)
	err = zklock.Do(ctx, l, func(context.Context, *zklock.Hold) error { return nil })
	return errors.Join(err, c.Close())
}
