package zkserver

import (
	"math/bits"
	"time"
)

const (
	// timingBuckets is the number of buckets of a Timing: 16 µs, each next bound twice
	// that, up to 16.8 s, and one bucket for longer times.
	timingBuckets = 22
	// firstBucketBits is the width of the first bucket: 1<<4 µs.
	firstBucketBits = 4
	// window is the period of a Timing's quantiles, which cover one to two windows.
	window = time.Minute
)

// Timing summarizes the durations of an operation.
type Timing struct {
	// Count is the number of operations since the start of the server.
	Count uint64
	// Sum is the total of the durations. Min and Max are the shortest and the longest. All
	// are 0 if Count is.
	Sum, Min, Max time.Duration
	// Buckets is a histogram since the start: each bucket counts the durations up to its
	// bound and above the previous bound. Count also includes those above the last bound.
	Buckets []TimingBucket
	// P50, P95, P99, and P999 are quantiles of the last one to two minutes, interpolated
	// inside buckets that double in width; 0 without operations.
	P50, P95, P99, P999 time.Duration
}

// TimingBucket is one bucket of a histogram.
type TimingBucket struct {
	UpTo  time.Duration
	Count uint64
}

// timing collects a Timing at the cost of a few additions. It is not safe for concurrent
// use.
type timing struct {
	count         uint64
	sum, min, max time.Duration
	total         buckets
	now, before   buckets       // the current window and the previous one
	windowStart   time.Duration // when the window began
}

type buckets [timingBuckets]uint64

// add counts a duration that ended at the time at, on any monotonic clock.
func (t *timing) add(d, at time.Duration) {
	d = max(d, 0)
	if t.count == 0 || d < t.min {
		t.min = d
	}
	t.max = max(t.max, d)
	t.sum += d
	t.count++
	t.rotate(at)
	i := bucketOf(d)
	t.total[i]++
	t.now[i]++
}

// rotate starts a new window if the current one is over.
func (t *timing) rotate(at time.Duration) {
	switch age := at - t.windowStart; {
	case age < window:
		return
	case age < 2*window:
		t.before = t.now
	default:
		t.before = buckets{}
	}
	t.now, t.windowStart = buckets{}, at
}

// bucketOf returns the bucket of d: the first whose bound is at least d.
func bucketOf(d time.Duration) int {
	us := uint64((d + time.Microsecond - 1) / time.Microsecond)
	if us == 0 {
		return 0
	}
	return min(max(bits.Len64(us-1)-firstBucketBits, 0), timingBuckets-1)
}

// bound returns the longest duration in bucket i.
func bound(i int) time.Duration { return time.Microsecond << (i + firstBucketBits) }

// report returns what was collected until at.
func (t *timing) report(at time.Duration) Timing {
	t.rotate(at)
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

// quantile returns the quantile q, interpolated inside its bucket. longest is the end of
// the last bucket, which has no bound.
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
