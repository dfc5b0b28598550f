package ensemble

import (
	"context"
	"syscall"
	"time"

	"github.com/zklock/zklock/test/storm"
)

// catchWait bounds the wait for a holder that comes by.
const catchWait = time.Second

// workerFaults are what can be done to holders and waiters.
func workerFaults() []fault {
	return []fault{
		{"worker killed", func(_ context.Context, r *round, step storm.Step) (bool, error) {
			return true, r.slay(step.Who % len(r.workers))
		}},
		{"holder killed", func(_ context.Context, r *round, _ storm.Step) (bool, error) {
			i, c := r.catch()
			if c == nil {
				return false, nil
			}
			defer c.Free()
			return true, r.slay(i)
		}},
		{"worker stopped", func(ctx context.Context, r *round, step storm.Step) (bool, error) {
			return r.pause(ctx, step.Who%len(r.workers), 2*span(step), func() {})
		}},
		{"holder stopped", func(ctx context.Context, r *round, step storm.Step) (bool, error) {
			i, c := r.catch()
			if c == nil {
				return false, nil
			}
			// For so long that the lock is another's by then.
			return r.pause(ctx, i, timeout+2*tick+span(step), c.Free)
		}},
	}
}

// catch returns a worker that holds and is about to write, which it does once the
// write is freed; or nil if none comes by.
func (r *round) catch() (i int, c *storm.Caught) {
	if c = r.resource.Catch(catchWait); c == nil {
		return 0, nil
	}
	for i, w := range r.workers {
		if w.Orders().Number == c.Worker {
			return i, c
		}
	}
	c.Free() // it was killed meanwhile
	return 0, nil
}

// pause has a worker stand still; before it goes on, ready is called.
func (r *round) pause(ctx context.Context, i int, d time.Duration, ready func()) (bool, error) {
	if err := r.workers[i].Signal(syscall.SIGSTOP); err != nil {
		ready()
		return false, err
	}
	rest(ctx, d)
	ready()
	return true, r.workers[i].Signal(syscall.SIGCONT)
}

// slay kills a worker and starts its next life.
func (r *round) slay(i int) error {
	for _, log := range r.logs {
		log.rec.Killing(r.workers[i].Orders().Name)
	}
	r.workers[i].Kill()
	w, err := r.spawn()
	if err != nil {
		return err
	}
	r.workers[i] = w
	return nil
}
