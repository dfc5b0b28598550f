package zktest

import "time"

// Delay delays all data by d in each direction. Zero ends the delay. Data that is
// already in flight keeps its delay, and the order does not change.
func (r *Relay) Delay(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = d
}

// DelayFunc delays each frame by f(frame), in addition to Delay. So a delay can
// depend on the direction, on the operation, or on chance. A nil f ends it. The
// order does not change: a frame behind a late frame is late as well.
//
// f is called when a frame is sent, from several goroutines, for one frame of each
// connection and direction at a time. It must not block.
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
