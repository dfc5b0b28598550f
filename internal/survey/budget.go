package survey

import "time"

// budget says when the next read may be made, so that there are no more than rate a
// second on the average. What is read at one time may cost more than is left: then
// the next read waits the longer.
type budget struct {
	rate float64
	left float64
	at   time.Time // when left was right
}

// wait is how long to wait before the next read; 0 means that it may be made.
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

// spend takes reads off.
func (b *budget) spend(reads int) { b.left -= float64(reads) }
