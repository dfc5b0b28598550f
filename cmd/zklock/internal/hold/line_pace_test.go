package hold

import (
	"testing"
	"time"
)

func TestPaceEstimatesAfterSeveralSteps(t *testing.T) {
	began := time.Now()
	var p pace
	for _, tt := range []struct {
		at       time.Duration
		position int
		want     time.Duration
	}{
		{0, 9, 0},
		{30 * time.Second, 8, 0}, // the estimate begins with the first step
		{40 * time.Second, 7, 0},
		{50 * time.Second, 6, 0},
		{60 * time.Second, 5, 50 * time.Second}, // three steps of 10 s
		{65 * time.Second, 5, 45 * time.Second},
		{80 * time.Second, 3, 30 * time.Second},
		{200 * time.Second, 3, 0},                // slower than before
		{201 * time.Second, 1, 25 * time.Second}, // seven steps in 171 s
		{202 * time.Second, 4, 0},                // a new entry
		{203 * time.Second, 0, 0},
		{204 * time.Second, 5, 0},
	} {
		now := began.Add(tt.at)
		p.observe(tt.position, now)
		if got := p.left(now); got != tt.want {
			t.Errorf("position %d after %v: %v left, want %v", tt.position, tt.at, got, tt.want)
		}
	}
	slow := pace{position: 5, from: 9, began: began, moved: began.Add(4 * time.Minute)}
	if got := slow.left(began.Add(4*time.Minute + 10*time.Second)); got != 5*time.Minute {
		t.Errorf("a slow queue: %v left", got)
	}
}
