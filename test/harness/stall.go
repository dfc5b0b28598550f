package harness

import (
	"context"
	"time"
)

// stallInterval is the time between two checks. A check that is later by at most this time is
// not a stall.
const stallInterval = 10 * time.Millisecond

// WatchStalls starts to measure the time in which this process could not run. Other processes
// may stall too, so limits on delays must add this time. The returned function ends the
// measurement and returns the sum. Call it once.
func WatchStalls(ctx context.Context) func() time.Duration { return watchStalls(ctx, time.Now) }

func watchStalls(ctx context.Context, clock func() time.Time) func() time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	sum := make(chan time.Duration, 1)
	go func() { // ends with ctx
		tick := time.NewTimer(stallInterval)
		defer tick.Stop()
		var late time.Duration
		last := clock()
		for {
			select {
			case <-ctx.Done():
				sum <- late
				return
			case <-tick.C:
			}
			now := clock()
			late += max(now.Sub(last)-2*stallInterval, 0)
			last = now
			tick.Reset(stallInterval)
		}
	}()
	return func() time.Duration {
		cancel()
		return <-sum
	}
}
