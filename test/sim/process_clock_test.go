package sim

import "time"

// clock is the clock of a process. It shows 1 ms when the process starts, has its own rate,
// and continues through pauses and suspend.
type clock struct {
	born time.Duration // true time
	past time.Duration // the time that it had counted at born
	ppm  int64         // how fast it is, in millionths
	lost time.Duration // the time that it was stopped; only with Config.StoppedClock
}

const (
	clockBegins = time.Millisecond
	million     = 1_000_000
)

// read returns what the clock shows at a true time.
func (c *clock) read(t time.Duration) time.Duration {
	d := t - c.born
	return clockBegins + c.past + d + d*time.Duration(c.ppm)/million - c.lost
}

// slew changes the rate at a true time.
func (c *clock) slew(t time.Duration, ppm int64) {
	past := c.read(t) - clockBegins + c.lost
	c.born, c.past, c.ppm = t, past, ppm
}

// when returns the first true time at which the clock shows at least the time at.
func (c *clock) when(at time.Duration) time.Duration {
	d := at - clockBegins - c.past + c.lost
	t := c.born + max(0, d-d*time.Duration(c.ppm)/time.Duration(million+c.ppm)-2)
	for c.read(t) < at {
		t++
	}
	return t
}
