package netutil

import (
	"testing"
	"time"
)

func TestLogLimiterAllowsBurstThenOneLinePerSecond(t *testing.T) {
	var l LogLimiter
	passed := 0
	for range 3 * LogBurst {
		if _, ok := l.Allow(time.Hour); ok {
			passed++
		}
	}
	if passed != LogBurst {
		t.Errorf("%d lines at once, want %d", passed, LogBurst)
	}
	if skipped, ok := l.Allow(time.Hour + logEvery); !ok || skipped != 2*LogBurst {
		t.Errorf("a second later: %d skipped, %v", skipped, ok)
	}
	if _, ok := l.Allow(time.Hour + logEvery + logEvery/2); ok {
		t.Error("a second line within the second")
	}
	for passed = 0; ; passed++ { // also after a long pause, at most a burst
		if _, ok := l.Allow(100 * time.Hour); !ok {
			break
		}
	}
	if passed != LogBurst {
		t.Errorf("%d lines after a pause, want %d", passed, LogBurst)
	}
}
