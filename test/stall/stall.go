// Package stall tells how busy the machine was while a test ran: a limit on how late
// something may be has to allow for that.
package stall

import (
	"context"
	"time"
)

// every is how often it is looked, and what may be late without being one.
const every = 10 * time.Millisecond

// Watch begins to measure by how much this process is late, which on a busy machine
// all others are as well. The returned function, to be called once, ends that and tells
// the sum.
func Watch(ctx context.Context) func() time.Duration { return watch(ctx, time.Now) }

func watch(ctx context.Context, clock func() time.Time) func() time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	sum := make(chan time.Duration, 1)
	go func() { // ends with ctx
		tick := time.NewTimer(every)
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
			late += max(now.Sub(last)-2*every, 0)
			last = now
			tick.Reset(every)
		}
	}()
	return func() time.Duration {
		cancel()
		return <-sum
	}
}
