package inspect

import "time"

// budget limits reads to an average rate per second. Slow reads get at most half of it, so that
// they delay quick reads little. One operation may cost more than is left; the next one
// of this speed then waits longer.
type budget struct {
	rate float64
	left [speeds]float64
	at   time.Time // when left was computed
}

// wait returns how long to wait before the next read of this speed; 0 means no wait.
func (b *budget) wait(of speed, now time.Time) time.Duration {
	rates := [speeds]float64{b.rate, b.rate / 2}
	if b.at.IsZero() {
		b.left = rates
	} else {
		elapsed := max(0, now.Sub(b.at).Seconds())
		share := min(rates[slow]*elapsed, rates[slow]-b.left[slow])
		b.left[slow] += share
		b.left[quick] = min(rates[quick], b.left[quick]+rates[quick]*elapsed-share)
	}
	b.at = now
	if b.left[of] > 0 {
		return 0
	}
	return time.Duration((1-b.left[of])/rates[of]*float64(time.Second)) + time.Millisecond
}

// spend subtracts reads.
func (b *budget) spend(of speed, reads int) { b.left[of] -= float64(reads) }
