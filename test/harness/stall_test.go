package harness

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchStallsReportsNothingWhenIdle also checks a context that ends early.
func TestWatchStallsReportsNothingWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := WatchStalls(t.Context())
		time.Sleep(time.Minute)
		if sum := late(); sum != 0 {
			t.Errorf("late by %v in a bubble, whose time cannot stall", sum)
		}
		ctx, cancel := context.WithCancel(t.Context())
		late = WatchStalls(ctx)
		cancel()
		if sum := late(); sum != 0 {
			t.Errorf("late by %v after the context ended", sum)
		}
	})
}

func TestWatchStallsReportsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		late := watchStalls(t.Context(), func() time.Time {
			if calls++; calls > 5 {
				return time.Now().Add(time.Second)
			}
			return time.Now()
		})
		time.Sleep(time.Minute)
		if sum := late(); sum != time.Second-stallInterval {
			t.Errorf("late by %v, want a second", sum)
		}
	})
}
