package zktest

import "time"

// Delay makes everything arrive d later, in each direction. Zero ends it.
// What is under way already keeps its time, and the order stays.
func (r *Relay) Delay(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = d
}

// DelayFunc asks f about every frame how much later it shall arrive, on top of
// Delay; nil ends it. With it a delay can differ by direction, by operation, or
// by chance. The order stays: what follows a late frame is late as well. f is
// called from several goroutines, one frame of each connection and direction
// at a time, and must not wait; it sees a frame when it is sent.
func (r *Relay) DelayFunc(f func(Frame) time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delayBy = f
}

// lag is the delay of a frame.
func (r *Relay) lag(f Frame) time.Duration {
	r.mu.Lock()
	d, by := r.delay, r.delayBy
	r.mu.Unlock()
	if by != nil {
		d += by(f)
	}
	return d
}

// pace is the time between two bytes in force.
func (r *Relay) pace() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trickle
}
