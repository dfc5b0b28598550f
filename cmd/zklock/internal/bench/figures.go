package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// This file measures the latency of the operations that locks consist of: reads, writes,
// free locks, and locks with a queue. It sends one request at a time, and removes all that
// it creates.

// FiguresConfig says what to measure. All fields are required.
type FiguresConfig struct {
	Dial       func(context.Context) (*zk.Client, error) // opens a new session for each call
	Root       string                                    // an unused path for the znodes of the measurements
	Each       time.Duration                             // time for one measurement
	Contenders int                                       // sessions that want one lock, at least 2
	Progress   func(string)                              // called before each measurement
}

// A Figure is one measurement.
type Figure struct {
	Name  string
	Count int           // number of operations
	Took  time.Duration // duration of all of them
	// The median, the 99th percentile, and the maximum of the durations.
	P50, P99, Max time.Duration
}

// Rate returns the operations per second.
func (r Figure) Rate() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Count) / r.Took.Seconds()
}

// The names of the rows, in their order.
const (
	Read     = "read"             // from the server of the connection
	Sync     = "sync and read"    // at least as recent as the leader's state at the request
	Write    = "write"            // confirmed by a quorum
	Acquire  = "acquire"          // of a free lock whose parent exists
	Cycle    = "acquire, release" // of the same lock
	Handover = "handover"         // from one session's release to the next session's grant
)

// measurement is one run.
type measurement struct {
	FiguresConfig
	z    *zk.Client
	rows []Figure
}

// MeasureFigures measures, and removes what it created, even if ctx ends. With an error, it
// returns the rows that were completed.
func MeasureFigures(ctx context.Context, cfg FiguresConfig) (rows []Figure, err error) {
	z, err := cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	b := &measurement{FiguresConfig: cfg, z: z}
	defer func() {
		// The cleanup has its own time limit, because ctx may be done.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, z.DeleteAll(end, cfg.Root), z.Close())
	}()
	if err := z.EnsurePath(ctx, b.lock(), nil); err != nil {
		return nil, err
	}
	for _, measure := range []func(context.Context) error{b.reads, b.syncs, b.writes, b.locks, b.handOvers} {
		if err := measure(ctx); err != nil {
			return b.rows, err
		}
	}
	return b.rows, nil
}

// lock returns the path of the measured lock.
func (b *measurement) lock() string { return b.Root + "/lock" }

// repeat calls f until the time of a measurement is over, and adds a row.
func (b *measurement) repeat(ctx context.Context, name string, f func() error) error {
	b.Progress(name)
	var times []time.Duration
	began := time.Now()
	for time.Since(began) < b.Each && ctx.Err() == nil {
		before := time.Now()
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		times = append(times, time.Since(before))
	}
	b.add(name, times, time.Since(began))
	return ctx.Err()
}

// add adds a row with these times.
func (b *measurement) add(name string, times []time.Duration, took time.Duration) {
	r := Figure{Name: name, Count: len(times), Took: took}
	if n := len(times); n > 0 {
		slices.Sort(times)
		r.P50, r.P99, r.Max = times[n/2], times[n*99/100], times[n-1]
	}
	b.rows = append(b.rows, r)
}

func (b *measurement) reads(ctx context.Context) error {
	return b.repeat(ctx, Read, func() error {
		_, _, err := b.z.Get(ctx, b.Root)
		return err
	})
}

func (b *measurement) syncs(ctx context.Context) error {
	return b.repeat(ctx, Sync, func() error {
		if err := b.z.Sync(ctx, b.Root); err != nil {
			return err
		}
		_, _, err := b.z.Get(ctx, b.Root)
		return err
	})
}

func (b *measurement) writes(ctx context.Context) error {
	data := make([]byte, 200) // as large as the data of an entry
	return b.repeat(ctx, Write, func() error {
		_, err := b.z.Set(ctx, b.Root, data, -1)
		return err
	})
}

// locks measures a lock that no other client wants.
func (b *measurement) locks(ctx context.Context) error {
	c := zklock.New(b.z, nil)
	defer c.Close()
	l := c.Mutex(b.lock())
	var granted []time.Duration
	err := b.repeat(ctx, Cycle, func() error {
		before := time.Now()
		hold, err := l.Acquire(ctx)
		if err != nil {
			return err
		}
		granted = append(granted, time.Since(before))
		return hold.Release(ctx)
	})
	if err != nil {
		return err
	}
	cycle := b.rows[len(b.rows)-1]
	b.rows = b.rows[:len(b.rows)-1]
	b.add(Acquire, granted, cycle.Took)
	b.rows = append(b.rows, cycle)
	return nil
}

// handOvers measures a lock for which other sessions always wait.
func (b *measurement) handOvers(ctx context.Context) error {
	b.Progress(Handover)
	limited, cancel := context.WithTimeout(ctx, b.Each)
	defer cancel()
	var mu sync.Mutex // guards the following variables
	var released time.Time
	var times []time.Duration
	var failed error
	var all sync.WaitGroup
	began := time.Now()
	for range b.Contenders {
		z, err := b.Dial(ctx)
		if err != nil {
			cancel()
			failed = errors.Join(failed, err)
			break
		}
		all.Go(func() {
			defer z.Close()
			c := zklock.New(z, nil)
			defer c.Close()
			err := contend(limited, c.Mutex(b.lock()), func(granted time.Time) {
				mu.Lock()
				defer mu.Unlock()
				if !released.IsZero() {
					times = append(times, granted.Sub(released))
				}
				released = time.Now()
			})
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	all.Wait()
	if failed != nil {
		return fmt.Errorf("%s: %w", Handover, failed)
	}
	b.add(Handover, times, time.Since(began))
	return ctx.Err()
}

// contend acquires a lock again and again until ctx ends. It calls had during each hold,
// directly before the release.
func contend(ctx context.Context, l *zklock.Lock, had func(granted time.Time)) error {
	for ctx.Err() == nil {
		hold, err := l.Acquire(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		had(time.Now())
		// Release the lock even if ctx has ended.
		if err := hold.Release(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}
