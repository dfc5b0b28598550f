package zkserver

import (
	"testing"
	"time"
)

func TestTimingBuckets(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want int
	}{
		{0, 0}, {time.Nanosecond, 0}, {16 * time.Microsecond, 0}, {16*time.Microsecond + 1, 1},
		{32 * time.Microsecond, 1}, {33 * time.Microsecond, 2}, {time.Millisecond, 6},
		{bound(timingBuckets - 2), timingBuckets - 2}, {bound(timingBuckets-2) + 1, timingBuckets - 1}, {1 << 62, timingBuckets - 1},
	} {
		if got := bucketOf(test.d); got != test.want {
			t.Errorf("%v is in bucket %d, want %d", test.d, got, test.want)
		}
		if i := bucketOf(test.d); i < timingBuckets-1 && test.d > bound(i) || i > 0 && test.d <= bound(i-1) {
			t.Errorf("%v is not within the bounds of bucket %d", test.d, i)
		}
	}
}

func TestTimingQuantiles(t *testing.T) {
	var tm timing
	if empty := tm.report(0); empty.Count != 0 || empty.P999 != 0 || len(empty.Buckets) != timingBuckets-1 {
		t.Errorf("an empty timing reports %+v", empty)
	}
	for range 99 {
		tm.add(time.Millisecond, 0)
	}
	tm.add(3*time.Second, time.Second)
	tm.add(-time.Second, time.Second) // if the clock goes back, the time counts as 0
	got := tm.report(time.Second)
	if got.Count != 101 || got.Min != 0 || got.Max != 3*time.Second || got.Sum != 3*time.Second+99*time.Millisecond {
		t.Errorf("%+v", got)
	}
	in := uint64(0)
	for _, b := range got.Buckets {
		in += b.Count
	}
	if in != 101 {
		t.Errorf("the buckets hold %d of 101", in)
	}
	if got.P50 < 512*time.Microsecond || got.P50 > 1024*time.Microsecond {
		t.Errorf("median %v, want about 1ms", got.P50)
	}
	if got.P999 < 2*time.Second || got.P999 > 3*time.Second {
		t.Errorf("the slowest thousandth is at %v, want 2s to 3s", got.P999)
	}
}

// TestTimingQuantilesForgetOldWindows checks that quantiles cover only the last minutes, and the
// other figures the whole time.
func TestTimingQuantilesForgetOldWindows(t *testing.T) {
	var tm timing
	tm.add(time.Second, 0)
	if got := tm.report(window + window/2).P50; got == 0 {
		t.Error("forgotten before two windows ended")
	}
	if got := tm.report(3 * window); got.P50 != 0 || got.Count != 1 || got.Max != time.Second {
		t.Errorf("after three windows: %+v", got)
	}
	tm.add(time.Millisecond, 10*window)
	if got := tm.report(10 * window).P999; got > 2*time.Millisecond {
		t.Errorf("the old second still counts: %v", got)
	}
}
