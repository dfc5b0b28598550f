package lockwork

import (
	"context"
	"runtime"
	"time"
)

// pollEvery is how often it is looked whether all wait.
const pollEvery = 20 * time.Millisecond

// drain has all workers queue behind a holder, which lets go once all of them
// wait, and counts until the last one has had the lock.
func (d *driver) drain(ctx context.Context, r *Result) error {
	first, err := d.sessions[d.work.Sessions].Lock(d.work.Lock(0), &d.work, false)
	if err != nil {
		return err
	}
	if err := first.Acquire(ctx); err != nil {
		return err
	}
	done := make(chan error, 1)
	// It ends when every worker has had the lock, or ctx has ended.
	go func() {
		done <- each(d.work.Workers, d.work.Workers, func(i int) error {
			lock, err := d.lock(i, false)
			if err != nil {
				return err
			}
			return cycle(ctx, lock, d.guards[0], 1, false)
		})
	}()
	if err := d.allWait(ctx, done); err != nil {
		return err
	}
	begin := time.Now()
	if err := first.Release(ctx); err != nil {
		return err
	}
	err = <-done
	r.Cycles, r.Time = int64(d.work.Workers), time.Since(begin)
	return err
}

// allWait returns when all workers are in the queue.
func (d *driver) allWait(ctx context.Context, failed <-chan error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		n, err := d.sessions[0].Count(ctx, d.work.Lock(0))
		if err != nil || n > d.work.Workers {
			return err
		}
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// hold acquires Work.Held further locks and keeps them, and says by how much the
// live memory grew.
func (d *driver) hold(ctx context.Context) (int64, error) {
	if d.work.Held == 0 {
		return 0, nil
	}
	before := live()
	w := d.work
	w.Locks, w.Path = w.Held, w.Path+"-held"
	d.held = make([]Lock, w.Held)
	err := each(w.Held, 64, func(i int) (err error) {
		if d.held[i], err = d.sessions[0].Lock(w.Lock(i), &w, false); err != nil {
			return err
		}
		return d.held[i].Acquire(ctx)
	})
	return live() - before, err
}

// live is the size of what the garbage collector leaves.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what a first one finalizes
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
