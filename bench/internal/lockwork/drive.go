package lockwork

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// setupTime bounds the setup, and each acquire and release in it, so that a lock that hangs
// fails instead of blocking the benchmark.
const setupTime = 2 * time.Minute

// Do does the work with a library.
func Do(ctx context.Context, l Library, servers string, w Work) (r Result, err error) {
	if err := w.check(); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, w.Time+2*setupTime)
	defer cancel()
	if loop, ok := l.(Looper); ok && w.loops() {
		return loop.Loop(ctx, servers, w)
	}
	d := driver{work: w}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.open(ctx, l, servers); err != nil {
		return r, err
	}
	if r.Heap, err = d.hold(ctx); err != nil {
		return r, err
	}
	if w.Time == 0 {
		err = d.drain(ctx, &r)
	} else {
		err = d.run(ctx, &r)
	}
	sum(d.guards, &r)
	return r, err
}

// driver does one work.
type driver struct {
	work     Work
	sessions []Session
	guards   []*guard
	held     []Lock
}

// open opens the sessions, several at a time. If a queue drains, it opens one more for the
// first holder, because in some libraries the locks of a session share an entry.
func (d *driver) open(ctx context.Context, l Library, servers string) error {
	n := d.work.Sessions
	if d.work.Time == 0 {
		n++
	}
	d.sessions = make([]Session, n)
	err := each(n, 16, func(i int) (err error) {
		d.sessions[i], err = l.Open(ctx, servers)
		return err
	})
	begin := time.Now()
	for range d.work.Locks {
		g := &guard{limit: 1, begin: begin}
		switch d.work.Kind {
		case ReadWrite:
			g.limit = writer
		case Semaphore:
			g.limit = int64(d.work.Permits)
		}
		d.guards = append(d.guards, g)
	}
	return err
}

func (d *driver) close() error {
	return each(len(d.sessions), 64, func(i int) error {
		if d.sessions[i] == nil {
			return nil
		}
		return d.sessions[i].Close()
	})
}

// each calls f with 0 to n-1, some of them concurrently, and joins the first error of each
// goroutine.
func each(n, atOnce int, f func(int) error) error {
	var next atomic.Int64
	errs := make([]error, min(n, atOnce))
	var wg sync.WaitGroup
	for g := range errs {
		wg.Go(func() {
			for errs[g] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[g] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lock returns a worker's handle of its lock.
func (d *driver) lock(worker int, reader bool) (Lock, error) {
	return d.sessions[worker%d.work.Sessions].Lock(d.work.Lock(worker), &d.work, reader)
}

// run makes the workers acquire and release until the time is over.
func (d *driver) run(ctx context.Context, r *Result) error {
	var stop atomic.Bool
	var cycles atomic.Int64
	errs := make([]error, d.work.Workers)
	ready := make(chan struct{})
	var wg, prepared sync.WaitGroup
	for i := range d.work.Workers {
		prepared.Add(1)
		wg.Go(func() { errs[i] = d.worker(ctx, i, prepared.Done, ready, &stop, &cycles) })
	}
	prepared.Wait()
	begin := time.Now()
	close(ready)
	timer := time.NewTimer(d.work.Time)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	r.Cycles, r.Time = cycles.Load(), time.Since(begin)
	stop.Store(true)
	wg.Wait()
	return errors.Join(errs...)
}

// worker is one worker of run.
func (d *driver) worker(ctx context.Context, i int, prepared func(), ready <-chan struct{}, stop *atomic.Bool, cycles *atomic.Int64) error {
	exclusive, err := d.lock(i, false)
	shared := exclusive
	if err == nil && d.work.Readers > 0 {
		shared, err = d.lock(i, true)
	}
	prepared()
	if err != nil {
		return err
	}
	<-ready
	random := rand.New(rand.NewPCG(uint64(i), 1)) // the same choices in each run
	g := d.guards[i%len(d.guards)]
	for !stop.Load() {
		lock, weight := exclusive, int64(1)
		if d.work.Kind == ReadWrite {
			weight = writer
		}
		if random.IntN(100) < d.work.Readers {
			lock, weight = shared, 1
		}
		if err := cycle(ctx, lock, g, weight, d.work.Async); err != nil {
			return fmt.Errorf("worker %d: %w", i, err)
		}
		cycles.Add(1)
	}
	return nil
}

// cycle acquires and releases once.
func cycle(ctx context.Context, lock Lock, g *guard, weight int64, async bool) error {
	began := time.Now()
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	g.enter(began, weight)
	g.leave(weight)
	if !async {
		return lock.Release(ctx)
	}
	a, ok := lock.(AsyncLock)
	if !ok {
		return fmt.Errorf("%w: release without waiting", ErrUnsupported)
	}
	a.ReleaseAsync()
	return nil
}
