package model

import (
	"testing"
	"time"
)

// TestMonotonicNeverGoesBack checks also that the clock runs at the rate of package time's.
func TestMonotonicNeverGoesBack(t *testing.T) {
	first, begun := Monotonic(), time.Now()
	for last := first; time.Since(begun) < 5*time.Millisecond; {
		now := Monotonic()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
	before := time.Since(begun)
	passed := time.Duration(Monotonic() - first)
	if passed < before {
		t.Errorf("%v passed in no less than %v", passed, before)
	}
}
