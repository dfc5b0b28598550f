package inspect

import (
	"testing"
	"time"
)

// TestHistoryAfterClockWasSetBack: the machine's clock was a year ahead for a while.
func TestHistoryAfterClockWasSetBack(t *testing.T) {
	c := recorder{step: stepOfOne}
	now := time.Date(2026, 1, 2, 3, 4, 30, 0, time.UTC)
	c.granted(now, 0)
	c.granted(now.AddDate(1, 0, 0), 0)
	for _, back := range []time.Duration{0, 40 * time.Second} { // the second goes back by less than a step
		c.granted(now.Add(2*time.Minute-back), 0)
	}
	points := c.history(now, now.Add(3*time.Minute)).Points
	if len(points) != 1 || points[0].Grants != 2 || !points[0].At.Equal(now.Add(90*time.Second)) {
		t.Errorf("the steps are %+v", points)
	}
}

// TestRetractWithoutSteps: the steps were dropped between a grant and its retraction.
func TestRetractWithoutSteps(t *testing.T) {
	c := recorder{step: stepOfOne}
	now := time.Date(2026, 1, 2, 3, 4, 30, 0, time.UTC)
	c.granted(now, time.Second)
	c.points = nil
	c.retract(member{arrived: now.Add(-time.Second), granted: now})
	if h := c.history(now, now); h.Grants != 0 || h.Wait.Count != 0 {
		t.Errorf("%d grants, %d waits", h.Grants, h.Wait.Count)
	}
}
