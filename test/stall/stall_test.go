package stall

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch: on a machine with nothing else to do nothing is late, and what ends
// early still tells.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := Watch(t.Context())
		time.Sleep(time.Minute)
		if sum := late(); sum != 0 {
			t.Errorf("late by %v in a bubble, whose time waits for everybody", sum)
		}
		ctx, cancel := context.WithCancel(t.Context())
		late = Watch(ctx)
		cancel()
		if sum := late(); sum != 0 {
			t.Errorf("late by %v when it had ended", sum)
		}
	})
}

// TestLate: the time is told in which it did not come to run.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		late := watch(t.Context(), func() time.Time {
			if looks++; looks > 5 {
				return time.Now().Add(time.Second)
			}
			return time.Now()
		})
		time.Sleep(time.Minute)
		if sum := late(); sum != time.Second-every {
			t.Errorf("late by %v, and it stood still for a second", sum)
		}
	})
}
