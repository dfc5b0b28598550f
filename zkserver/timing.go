package zkserver

import (
	"math/bits"
	"time"
)

const (
	// timingBuckets is the number of buckets of a Timing: 16 µs, twice that,
	// and so on up to 16.8 s, and one for all that took longer.
	timingBuckets = 22
	// firstBucketBits is the width of the first bucket: 1<<4 µs.
	firstBucketBits = 4
	// window is how long the quantiles of a Timing look back, once to twice.
	window = time.Minute
)

// Timing is how long something took, over all times that it was done.
type Timing struct {
	// Count is how often it was done since the start of the server.
	Count uint64
	// Sum is the total of the durations, Min and Max the shortest and the
	// longest; all 0 where Count is.
	Sum, Min, Max time.Duration
	// Buckets is a histogram since the start: each counts what took no longer
	// than its bound and longer than the bound before. Count has those beyond
	// the last bound too.
	Buckets []TimingBucket
	// P50, P95, P99 and P999 are quantiles of the last one to two minutes,
	// interpolated inside buckets that double in width, 0 if nothing was done.
	P50, P95, P99, P999 time.Duration
}

// TimingBucket is one bucket of a histogram.
type TimingBucket struct {
	UpTo  time.Duration
	Count uint64
}

// timing collects a Timing at the cost of a few additions. Not safe for
// concurrent use.
type timing struct {
	count         uint64
	sum, min, max time.Duration
	total         buckets
	now, before   buckets       // this window and the last
	turned        time.Duration // when the window began
}

type buckets [timingBuckets]uint64

// add counts a duration that ended at the moment at, on any steady clock.
func (t *timing) add(d, at time.Duration) {
	d = max(d, 0)
	if t.count == 0 || d < t.min {
		t.min = d
	}
	t.max = max(t.max, d)
	t.sum += d
	t.count++
	t.turn(at)
	i := bucketOf(d)
	t.total[i]++
	t.now[i]++
}

// turn begins a new window where the old one is over.
func (t *timing) turn(at time.Duration) {
	switch age := at - t.turned; {
	case age < window:
		return
	case age < 2*window:
		t.before = t.now
	default:
		t.before = buckets{}
	}
	t.now, t.turned = buckets{}, at
}

// bucketOf is the bucket that takes d: the first whose bound is not below it.
func bucketOf(d time.Duration) int {
	us := uint64((d + time.Microsecond - 1) / time.Microsecond)
	if us == 0 {
		return 0
	}
	return min(max(bits.Len64(us-1)-firstBucketBits, 0), timingBuckets-1)
}

// bound is the longest duration that bucket i takes.
func bound(i int) time.Duration { return time.Microsecond << (i + firstBucketBits) }

// show is what was collected until at.
func (t *timing) show(at time.Duration) Timing {
	t.turn(at)
	out := Timing{Count: t.count, Sum: t.sum, Min: t.min, Max: t.max, Buckets: make([]TimingBucket, timingBuckets-1)}
	for i := range out.Buckets {
		out.Buckets[i] = TimingBucket{bound(i), t.total[i]}
	}
	recent := t.now
	for i, n := range t.before {
		recent[i] += n
	}
	out.P50, out.P95 = recent.quantile(0.5, t.max), recent.quantile(0.95, t.max)
	out.P99, out.P999 = recent.quantile(0.99, t.max), recent.quantile(0.999, t.max)
	return out
}

// quantile interpolates inside the bucket that holds the q-th part; longest is
// the end of the last, which has no bound.
func (b *buckets) quantile(q float64, longest time.Duration) time.Duration {
	total := uint64(0)
	for _, n := range b {
		total += n
	}
	rank, seen := q*float64(total), 0.0
	for i, n := range b {
		if n == 0 || seen+float64(n) < rank {
			seen += float64(n)
			continue
		}
		low, high := time.Duration(0), bound(i)
		if i > 0 {
			low = bound(i - 1)
		}
		if i == timingBuckets-1 || high > longest {
			high = max(longest, low)
		}
		return low + time.Duration(float64(high-low)*(rank-seen)/float64(n))
	}
	return 0
}
