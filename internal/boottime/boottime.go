// Package boottime reads a clock that keeps running while the machine is suspended.
//
// A session's deadline is about real time: the server keeps counting while a laptop
// is suspended or a virtual machine is paused. Go's monotonic clock stops during a
// suspend (on Linux it is CLOCK_MONOTONIC), so a deadline measured with it would be
// believed for hours too long. Linux also has CLOCK_BOOTTIME, the same clock plus the
// suspended time. This package returns package time's monotonic reading plus that
// difference. On systems without such a clock it returns package time's reading
// alone.
//
// Timers remain those of package time. A timer that fires late because of a suspend
// does no harm, because its user reads this clock before acting.
package boottime

import (
	"sync/atomic"
	"time"
)

// hysteresis is the smallest change of the difference between the two clocks that
// counts as a suspend. Two clocks cannot be read at the same instant, so the
// difference jitters by the time between the readings. A suspend shorter than this
// does not matter to a session.
const hysteresis = 10 * time.Millisecond

// system is the clock of the process.
var system = newClock(bootReading)

// Now returns the time since the process started, including suspends. It never
// decreases. In a testing/synctest bubble it is the time since the start of the
// bubble, on the bubble's clock. Readings from inside and outside a bubble must not
// be compared. Now is safe for concurrent use.
func Now() time.Duration {
	return system.now(time.Now())
}

// Recent returns the time without a system call. It counts only suspends that some call
// of Now in this process has noticed. So Recent is never later than Now, and never
// earlier than the last result of Now.
//
// A caller of Recent acts like a caller of Now that the machine suspended between the
// reading and the action, provided that the input of the action existed before the last
// call of Now. For other input, Recent is only a lower bound of the time.
func Recent() time.Duration {
	return system.recent(time.Now())
}

// Suspend advances the clock by d relative to package time for the rest of the
// process, as if the machine had been suspended that long. It affects every user of
// the clock in the process, and exists for tests and simulations. A negative d counts
// as zero, because the clock never decreases.
func Suspend(d time.Duration) {
	system.simulated.Add(int64(max(d, 0)))
}

// clock adds the suspended time to package time's readings.
type clock struct {
	start time.Time
	// boot reads the clock that runs during a suspend. It returns false if the system
	// has none. It is the only connection between this package and the system.
	boot func() (time.Duration, bool)
	// base is boot's lead over package time when the clock was created.
	base time.Duration
	// suspended is the time suspended since then, in nanoseconds.
	suspended atomic.Int64
	// simulated is the time that Suspend added, in nanoseconds, and noticed is the part
	// of it that a call of now has counted.
	simulated, noticed atomic.Int64
}

// newClock returns a clock that starts at zero.
func newClock(boot func() (time.Duration, bool)) *clock {
	c := &clock{start: time.Now(), boot: boot}
	// The boot clock is read first, as in readSuspended. A pause between the readings
	// makes base too small, and later readings slightly too large, which only ends
	// deadlines early.
	lead, _ := boot()
	c.base = lead - time.Since(c.start)
	return c
}

// now converts package time's reading to this clock's.
func (c *clock) now(t time.Time) time.Duration {
	simulated := time.Duration(c.simulated.Load())
	for old := c.noticed.Load(); old < int64(simulated) && !c.noticed.CompareAndSwap(old, int64(simulated)); {
		old = c.noticed.Load()
	}
	if inBubble(t) {
		return t.Sub(bubbleStart()) + simulated
	}
	return c.readSuspended() + time.Since(c.start) + simulated
}

// recent is now without the suspends that no call of now has noticed.
func (c *clock) recent(t time.Time) time.Duration {
	noticed := time.Duration(c.noticed.Load())
	if inBubble(t) {
		return t.Sub(bubbleStart()) + noticed
	}
	return time.Duration(c.suspended.Load()) + time.Since(c.start) + noticed
}

// readSuspended detects a suspend since the last call, and returns the total
// suspended time.
func (c *clock) readSuspended() time.Duration {
	boot, ok := c.boot()
	if !ok {
		return 0
	}
	// The boot clock is read first. If the process is delayed between the readings,
	// by preemption or SIGSTOP, the difference is too small, never too large. It is a
	// lower bound of the true value, which only grows. So the maximum is kept, and a
	// wrong reading needs no correction.
	seen := int64(boot - c.base - time.Since(c.start))
	for {
		old := c.suspended.Load()
		if seen <= old+int64(hysteresis) {
			return time.Duration(old)
		}
		if c.suspended.CompareAndSwap(old, seen) {
			return time.Duration(seen)
		}
	}
}

// inBubble reports whether package time read t in a synctest bubble: only there it
// returns times without a monotonic reading. The system's clocks have no meaning in a
// bubble: reading them would make the bubble depend on the machine.
func inBubble(t time.Time) bool { return t == t.Round(0) }

// bubbleStart returns the initial time of every synctest bubble, as documented in
// testing/synctest.
func bubbleStart() time.Time {
	return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
}
