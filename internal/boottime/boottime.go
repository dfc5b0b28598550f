// Package boottime reads a clock that goes on while the machine sleeps.
//
// A session's deadline is a promise about real time: the server counts on while
// a laptop is suspended or a virtual machine is paused. Go's monotonic clock
// stands still during a suspend (on Linux it is CLOCK_MONOTONIC), so a deadline
// measured with it would be believed for hours too long. Linux also has
// CLOCK_BOOTTIME, the same clock with the time asleep added. This package gives
// package time's monotonic reading plus that difference. On systems without
// such a clock the reading is package time's alone.
//
// Timers stay with package time: one that fires late because of a suspend is
// caught by whoever looks at this clock first.
package boottime

import (
	"sync/atomic"
	"time"
)

// hysteresis is how far the difference between the two clocks must have moved
// to be believed. Two clocks can't be read at one instant, so the difference
// jitters by the time between the readings; no suspend that matters to a
// session is this short.
const hysteresis = 10 * time.Millisecond

// system is the process's clock.
var system = newClock(bootReading)

// Now returns the time since the process started, suspends included. It never
// goes back. In a testing/synctest bubble it is the time since the bubble's own
// beginning, on the bubble's clock; readings from inside and outside a bubble
// must not be compared. It may be called from any goroutine.
func Now() time.Duration {
	return system.now(time.Now())
}

// Suspend moves the clock ahead of package time by d for the rest of the
// process, as if the machine had slept that long; every clock user in the
// process sees it. It is there for tests and simulations of a suspend. A d
// below zero counts as zero, because the clock never goes back.
func Suspend(d time.Duration) {
	system.slept.Add(int64(max(d, 0)))
}

// clock adds the time asleep to package time's readings.
type clock struct {
	start time.Time
	// boot reads the clock that counts through a suspend; false if the system
	// has none. It is the one seam between this package and the system.
	boot func() (time.Duration, bool)
	// base is boot's lead over package time when the clock was made.
	base time.Duration
	// ahead is the time asleep since then, in nanoseconds, as far as believed.
	ahead atomic.Int64
	// slept is what Suspend added, in nanoseconds.
	slept atomic.Int64
}

// newClock returns a clock that begins at zero.
func newClock(boot func() (time.Duration, bool)) *clock {
	c := &clock{start: time.Now(), boot: boot}
	// Boot first, as in asleep: a pause between the readings makes the base too
	// small, and the clock a little fast later, which only ends promises early.
	lead, _ := boot()
	c.base = lead - time.Since(c.start)
	return c
}

// now turns package time's reading into this clock's.
func (c *clock) now(t time.Time) time.Duration {
	slept := time.Duration(c.slept.Load())
	if t == t.Round(0) {
		// Only a synctest bubble gives times without a monotonic reading. The
		// system's clocks have no meaning there: reading them would make the
		// bubble depend on the machine.
		return t.Sub(bubbleStart()) + slept
	}
	return c.asleep() + time.Since(c.start) + slept
}

// asleep looks for a suspend since the last look, and returns all of them.
func (c *clock) asleep() time.Duration {
	boot, ok := c.boot()
	if !ok {
		return 0
	}
	// The boot clock is read first. Whatever happens between the readings, a
	// preemption or a SIGSTOP, makes the difference too small, never too large:
	// it is a lower bound of the true one, which only grows. So the largest is
	// kept, and a reading gone astray needs no repair.
	seen := int64(boot - c.base - time.Since(c.start))
	for {
		old := c.ahead.Load()
		if seen <= old+int64(hysteresis) {
			return time.Duration(old)
		}
		if c.ahead.CompareAndSwap(old, seen) {
			return time.Duration(seen)
		}
	}
}

// bubbleStart is where the clock of every synctest bubble begins, by the
// documentation of testing/synctest.
func bubbleStart() time.Time {
	return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
}
