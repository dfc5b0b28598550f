package sim

import "time"

// clock is the clock of one process: it shows 1 ms when the process begins and
// runs on at a rate of its own, through pauses and suspend.
type clock struct {
	born time.Duration // true time
	past time.Duration // what it had counted by then
	ppm  int64         // how many millionths it is fast
	lost time.Duration // by which it stood still; only with Config.StandingClock
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

// slew makes it run at another rate from a true time on.
func (c *clock) slew(t time.Duration, ppm int64) {
	past := c.read(t) - clockBegins + c.lost
	c.born, c.past, c.ppm = t, past, ppm
}

// when returns the first true time at which the clock shows at least this.
func (c *clock) when(at time.Duration) time.Duration {
	d := at - clockBegins - c.past + c.lost
	t := c.born + max(0, d-d*time.Duration(c.ppm)/time.Duration(million+c.ppm)-2)
	for c.read(t) < at {
		t++
	}
	return t
}
