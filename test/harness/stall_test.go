package harness

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchStallsReportsNothingWhenIdle: on a machine with nothing else to do nothing is late, and what ends
// early still tells.
func TestWatchStallsReportsNothingWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := WatchStalls(t.Context())
		time.Sleep(time.Minute)
		if sum := late(); sum != 0 {
			t.Errorf("late by %v in a bubble, whose time waits for everybody", sum)
		}
		ctx, cancel := context.WithCancel(t.Context())
		late = WatchStalls(ctx)
		cancel()
		if sum := late(); sum != 0 {
			t.Errorf("late by %v when it had ended", sum)
		}
	})
}

// TestWatchStallsReportsDelay: the time is told in which it did not come to run.
func TestWatchStallsReportsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		late := watchStalls(t.Context(), func() time.Time {
			if looks++; looks > 5 {
				return time.Now().Add(time.Second)
			}
			return time.Now()
		})
		time.Sleep(time.Minute)
		if sum := late(); sum != time.Second-stallInterval {
			t.Errorf("late by %v, and it stood still for a second", sum)
		}
	})
}
