package boottime

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeBoot is a boot clock that is ahead of package time by lead. In a bubble, both clocks stop
// together, so differences are exact.
type fakeBoot struct {
	start  time.Time
	lead   time.Duration
	absent bool
}

func (f *fakeBoot) read() (time.Duration, bool) {
	return time.Since(f.start) + f.lead, !f.absent
}

// TestSuspendIsDetected changes the difference between the clocks in steps.
func TestSuspendIsDetected(t *testing.T) {
	steps := []struct {
		name string
		lead time.Duration
		want time.Duration
	}{
		{"no suspend", 0, 0},
		{"jitter up", 9 * time.Millisecond, 0},
		{"jitter down", -9 * time.Millisecond, 0},
		{"exactly the hysteresis", hysteresis, 0},
		{"a suspend", 3 * time.Hour, 3 * time.Hour},
		{"jitter on top", 3*time.Hour + 5*time.Millisecond, 3 * time.Hour},
		{"an outlier", time.Hour, 3 * time.Hour},
		{"a second suspend", 4 * time.Hour, 4 * time.Hour},
		{"slow drift past the hysteresis", 4*time.Hour + 11*time.Millisecond, 4*time.Hour + 11*time.Millisecond},
	}
	synctest.Test(t, func(t *testing.T) {
		// The initial lead is due to suspends before the process started.
		boot := &fakeBoot{start: time.Now(), lead: 1000 * time.Hour}
		base := boot.lead
		c := newClock(boot.read)
		for _, step := range steps {
			boot.lead = base + step.lead
			if got := c.readSuspended(); got != step.want {
				t.Errorf("%s: suspended %v, want %v", step.name, got, step.want)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestNoSuspendIsDetectedWithoutBootClock(t *testing.T) {
	boot := &fakeBoot{start: time.Now(), lead: time.Hour, absent: true}
	c := newClock(boot.read)
	boot.lead = 2 * time.Hour
	if got := c.readSuspended(); got != 0 {
		t.Errorf("suspended %v without a boot clock, want 0", got)
	}
}

// TestNowAddsSuspend runs outside of a bubble.
func TestNowAddsSuspend(t *testing.T) {
	boot := &fakeBoot{start: time.Now()}
	c := newClock(boot.read)
	before := c.now(time.Now())
	boot.lead = time.Hour
	after := c.now(time.Now())
	if d := after - before; d < time.Hour-time.Second || d > 2*time.Hour {
		t.Errorf("an hour's suspend moved the clock by %v", d)
	}
	if before < 0 || before > time.Hour {
		t.Errorf("the clock began at %v, want near zero", before)
	}
}

// TestSuspendMovesNow also checks that a negative suspend has no effect.
func TestSuspendMovesNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Now()
		Suspend(90 * time.Second)
		if d := Now() - before; d != 90*time.Second {
			t.Errorf("moved by %v, want 90s", d)
		}
		Suspend(-time.Hour)
		if d := Now() - before; d != 90*time.Second {
			t.Errorf("a negative suspend moved the clock to %v", d)
		}
	})
}

// TestRecentMissesSuspendUntilNow checks that Recent counts a suspend only after a call of Now, and
// is otherwise the same clock.
func TestRecentMissesSuspendUntilNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Now()
		Suspend(90 * time.Second)
		time.Sleep(time.Second)
		if d := Recent() - before; d != time.Second {
			t.Errorf("moved by %v before Now noticed the suspend, want 1s", d)
		}
		after := Now()
		if got := Recent(); got != after || after-before != 91*time.Second {
			t.Errorf("Recent is %v after Now returned %v, which moved by %v", got, after, after-before)
		}
	})
	boot := &fakeBoot{start: time.Now()}
	c := newClock(boot.read)
	before := c.now(time.Now())
	boot.lead = time.Hour
	if d := c.recent(time.Now()) - before; d < 0 || d > time.Hour/2 {
		t.Errorf("moved by %v before now noticed the suspend", d)
	}
	after := c.now(time.Now())
	if d := c.recent(time.Now()) - after; d < 0 || d > time.Hour/2 || after-before < time.Hour-time.Second {
		t.Errorf("recent is %v after now, which moved by %v", d, after-before)
	}
}

// TestNowIsExactInBubble checks that Now in a bubble depends only on the time of the bubble.
func TestNowIsExactInBubble(t *testing.T) {
	var first [2]time.Duration
	for i := range first {
		synctest.Test(t, func(t *testing.T) {
			first[i] = Now()
			time.Sleep(25 * time.Hour)
			if d := Now() - first[i]; d != 25*time.Hour {
				t.Errorf("25 h in the bubble read as %v", d)
			}
		})
	}
	if first[0] != first[1] {
		t.Errorf("two bubbles began at %v and %v", first[0], first[1])
	}
}

// TestNowNeverDecreases reads the real clock from several goroutines.
func TestNowNeverDecreases(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := Now()
			for range 2000 {
				for _, read := range []func() time.Duration{Now, Recent} {
					now := read()
					if now < last {
						t.Errorf("%v after %v", now, last)
						return
					}
					last = now
				}
			}
		})
	}
	wg.Wait()
}

// TestNowAgreesWithPackageTime compares both clocks over some work. A busy machine delays
// everything, so the bounds exclude only a wrong unit or base.
func TestNowAgreesWithPackageTime(t *testing.T) {
	outer := time.Now()
	from := Now()
	inner := time.Now()
	for range 1000 {
		Now()
	}
	shortest := time.Since(inner)
	d := Now() - from
	if longest := time.Since(outer) + hysteresis; d < shortest || d > longest {
		t.Errorf("advanced %v, want %v to %v", d, shortest, longest)
	}
}

func TestConcurrentSuspendsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { Suspend(time.Second) })
		}
		wg.Wait()
		if d := Now() - before; d != 10*time.Second {
			t.Errorf("moved by %v, want 10s", d)
		}
	})
}

// BenchmarkNow measures one reading of the clock.
func BenchmarkNow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Now()
	}
}

// BenchmarkRecent measures one reading without a system call.
func BenchmarkRecent(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Recent()
	}
}
