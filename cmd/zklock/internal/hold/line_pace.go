package hold

import "time"

// minSteps is how many steps of the queue an estimate needs.
const minSteps = 3

// pace estimates the rest of a wait from the steps that the queue made. The zero value has
// seen nothing.
type pace struct {
	position int       // the last one
	from     int       // the position after the first step
	began    time.Time // when that step was seen
	moved    time.Time // when the last step was seen
}

// observe records a position, 0 if it is not known.
func (p *pace) observe(position int, now time.Time) {
	switch {
	case position == 0 || position > p.position:
		*p = pace{position: position} // another queue, or the end of this one
	case position < p.position && p.from == 0: // when the step before was made is not known
		*p = pace{position: position, from: position, began: now, moved: now}
	case position < p.position:
		p.position, p.moved = position, now
	}
}

// left returns about how long the wait still takes, or 0 if the queue made too few steps, or
// is slower now than it was.
func (p *pace) left(now time.Time) time.Duration {
	steps := p.from - p.position
	if steps < minSteps {
		return 0
	}
	each := p.moved.Sub(p.began) / time.Duration(steps)
	left := each*time.Duration(p.position) - now.Sub(p.moved)
	if left > time.Minute {
		return left.Round(time.Minute / 2)
	}
	return max(left.Round(5*time.Second), 0)
}
