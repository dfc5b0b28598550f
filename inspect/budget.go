package inspect

import "time"

// budget limits reads to an average rate per second. One operation may cost more than is
// left; the next one then waits longer.
type budget struct {
	rate float64
	left float64
	at   time.Time // when left was computed
}

// wait returns how long to wait before the next read; 0 means no wait.
func (b *budget) wait(now time.Time) time.Duration {
	if b.at.IsZero() {
		b.left = b.rate
	} else {
		b.left = min(b.rate, b.left+b.rate*max(0, now.Sub(b.at).Seconds()))
	}
	b.at = now
	if b.left > 0 {
		return 0
	}
	return time.Duration((1-b.left)/b.rate*float64(time.Second)) + time.Millisecond
}

// spend subtracts reads.
func (b *budget) spend(reads int) { b.left -= float64(reads) }
