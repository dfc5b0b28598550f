package survey

import (
	"math"
	"slices"
	"time"
)

// Durations are counted in buckets, each a quarter of a doubling wide, from a
// millisecond on: what is told of them is right to a tenth.
const (
	bucketsPerDoubling = 4
	buckets            = 160 // the last one begins beyond a week
)

// tally counts durations.
type tally struct {
	counts []bucket // sorted, without empty ones
	total  int64
	max    time.Duration
}

// bucket is how many durations were of about one length.
type bucket struct {
	length uint8
	count  uint32
}

// add counts a duration.
func (t *tally) add(d time.Duration) {
	d = max(d, 0)
	length := uint8(0)
	if ms := float64(d) / float64(time.Millisecond); ms >= 1 {
		length = uint8(min(buckets-1, 1+math.Log2(ms)*bucketsPerDoubling))
	}
	i, found := slices.BinarySearchFunc(t.counts, length, func(b bucket, l uint8) int { return int(b.length) - int(l) })
	if !found {
		t.counts = slices.Insert(t.counts, i, bucket{length: length})
	}
	t.counts[i].count++
	t.total++
	t.max = max(t.max, d)
}

// times sums the tally up.
func (t *tally) times() Times {
	return Times{Count: t.total, P50: t.quantile(0.5), P99: t.quantile(0.99), Max: t.max.Seconds()}
}

// quantile is the length in seconds that this part of the durations does not exceed.
func (t *tally) quantile(part float64) float64 {
	rank := int64(math.Ceil(part * float64(t.total)))
	for _, b := range t.counts {
		if rank -= int64(b.count); rank <= 0 {
			return min(b.middle(), t.max.Seconds())
		}
	}
	return 0
}

// middle is the bucket's length in seconds.
func (b bucket) middle() float64 {
	if b.length == 0 {
		return 0.0005
	}
	return math.Exp2((float64(b.length)-0.5)/bucketsPerDoubling) / 1000
}
