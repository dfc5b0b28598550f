package lockwork

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// pollEvery is the interval between checks whether all workers wait.
const pollEvery = 20 * time.Millisecond

// drain makes all workers wait for a holder, which then releases the lock. It measures until the
// last worker has held the lock.
func (d *driver) drain(ctx context.Context, r *Result) error {
	first, err := d.sessions[d.work.Sessions].Lock(d.work.Lock(0), &d.work, false)
	if err != nil {
		return err
	}
	if err := first.Acquire(ctx); err != nil {
		return err
	}
	before := live()
	grants := make([]time.Time, d.work.Workers) // in their order
	var granted atomic.Int64
	done := make(chan error, 1)
	// The goroutine ends when every worker has held the lock, or when ctx is done.
	go func() {
		done <- each(d.work.Workers, d.work.Workers, func(i int) error {
			lock, err := d.lock(i, false)
			if err != nil {
				return err
			}
			lock = observedLock{lock, func() { grants[granted.Add(1)-1] = time.Now() }}
			return cycle(ctx, lock, d.guards[0], 1, false)
		})
	}()
	if err := d.allWait(ctx, done); err != nil {
		return err
	}
	r.Heap = max(live()-before, 0)
	read, err := bytesRead()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := first.Release(ctx); err != nil {
		return err
	}
	err = <-done
	r.Cycles, r.Time = int64(d.work.Workers), time.Since(begin)
	if err != nil {
		return err
	}
	after, err := bytesRead()
	r.Read = after - read
	if tenth := d.work.Workers / 10; tenth > 0 {
		r.FirstTenth, r.LastTenth = grants[tenth-1].Sub(begin), grants[len(grants)-1].Sub(grants[len(grants)-1-tenth])
	}
	return err
}

// An observedLock calls a function when it is acquired.
type observedLock struct {
	Lock
	acquired func()
}

func (l observedLock) Acquire(ctx context.Context) error {
	err := l.Lock.Acquire(ctx)
	if err == nil {
		l.acquired()
	}
	return err
}

// bytesRead returns how many bytes this process has read from files and connections.
func bytesRead() (int64, error) {
	text, err := os.ReadFile("/proc/self/io")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // not on Linux
	}
	if err != nil {
		return 0, err
	}
	var n int64
	_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
	return n, err
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

// hold acquires Work.Held other locks, keeps them, and returns by how much the live memory
// grew.
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

// live returns the size of the memory after a garbage collection.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what finalizers of the first collection released
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
