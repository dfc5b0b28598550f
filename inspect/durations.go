package inspect

import (
	"math"
	"slices"
	"time"
)

// Durations are counted in buckets from one millisecond on. Four buckets cover a factor of
// two, so that quantiles are accurate to a tenth.
const (
	bucketsPerDoubling = 4
	buckets            = 160 // the last one begins beyond a week
)

// durationCounts counts durations.
type durationCounts struct {
	counts []bucket // sorted, without empty ones
	total  int64
	max    time.Duration
}

// bucket counts the durations of about one length.
type bucket struct {
	length uint8
	count  uint32
}

// add counts a duration.
func (t *durationCounts) add(d time.Duration) {
	i, found := t.find(d)
	if !found {
		t.counts = slices.Insert(t.counts, i, bucket{length: length(d)})
	}
	t.counts[i].count++
	t.total++
	t.max = max(t.max, d)
}

// remove removes a duration that was counted. It does not change max.
func (t *durationCounts) remove(d time.Duration) {
	if i, found := t.find(d); found {
		t.total--
		if t.counts[i].count--; t.counts[i].count == 0 {
			t.counts = slices.Delete(t.counts, i, i+1)
		}
	}
}

// find returns the index of a duration's bucket, or where to insert it.
func (t *durationCounts) find(d time.Duration) (i int, found bool) {
	return slices.BinarySearchFunc(t.counts, length(d), func(b bucket, l uint8) int { return int(b.length) - int(l) })
}

// length returns the number of a duration's bucket.
func length(d time.Duration) uint8 {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 1 {
		return 0
	}
	return uint8(min(buckets-1, 1+math.Log2(ms)*bucketsPerDoubling))
}

// times returns the statistics.
func (t *durationCounts) times() DurationStats {
	return DurationStats{Count: t.total, P50: t.quantile(0.5), P99: t.quantile(0.99), Max: t.max.Seconds()}
}

// quantile returns the quantile in seconds.
func (t *durationCounts) quantile(part float64) float64 {
	rank := int64(math.Ceil(part * float64(t.total)))
	for _, b := range t.counts {
		if rank -= int64(b.count); rank <= 0 {
			return min(b.middle(), t.max.Seconds())
		}
	}
	return 0
}

// middle returns the middle of the bucket in seconds.
func (b bucket) middle() float64 {
	if b.length == 0 {
		return 0.0005
	}
	return math.Exp2((float64(b.length)-0.5)/bucketsPerDoubling) / 1000
}
