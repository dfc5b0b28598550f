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
	i, found := t.find(d)
	if !found {
		t.counts = slices.Insert(t.counts, i, bucket{length: length(d)})
	}
	t.counts[i].count++
	t.total++
	t.max = max(t.max, d)
}

// remove takes back a duration that was counted, if it was. The longest one stays the
// longest.
func (t *tally) remove(d time.Duration) {
	if i, found := t.find(d); found {
		t.total--
		if t.counts[i].count--; t.counts[i].count == 0 {
			t.counts = slices.Delete(t.counts, i, i+1)
		}
	}
}

// find returns where a duration's bucket is, or belongs.
func (t *tally) find(d time.Duration) (i int, found bool) {
	return slices.BinarySearchFunc(t.counts, length(d), func(b bucket, l uint8) int { return int(b.length) - int(l) })
}

// length is the number of a duration's bucket.
func length(d time.Duration) uint8 {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 1 {
		return 0
	}
	return uint8(min(buckets-1, 1+math.Log2(ms)*bucketsPerDoubling))
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
