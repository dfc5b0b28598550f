package hold

import "time"

// notice is what a program must be told about its hold.
type notice int

const (
	noticeNone     notice = iota
	noticeExtended        // the hold is safe until another time, see step
	noticeLost            // the hold is lost, or the promised time is over
)

// promise is the time until which a program may rely on its hold, as the program was told.
// Its step decides what to tell the program next. A lock is kept only while its program is
// told so: if the program does not read, the promise ends, and with it the hold.
type promise struct {
	plan  Plan
	until time.Duration // on the clock of step's now
}

// promise returns the promise for a hold that begins now.
func (p Plan) promise(now time.Duration, h Hold) *promise {
	return &promise{plan: p, until: now + h.Remaining - p.Margin}
}

// step returns what to tell the program now, and the latest time of the next call. ready
// says that the program has taken all lines so far. After noticeExtended, the caller must
// tell the program the new time.
func (p *promise) step(now time.Duration, h Hold, ready bool) (notice, time.Duration) {
	// The margin is for the way of the line to the program, and for the program to act.
	safe := now + h.Remaining - p.plan.Margin
	// Only a server that grants a shorter session timeout makes the time earlier. The program
	// must learn that even if it has not taken all lines.
	shorter := !h.Lost && p.until-safe >= p.plan.Interval/4
	if shorter {
		p.until = safe
	}
	switch {
	case h.Lost:
		return noticeLost, now
	// Remaining is measured a moment after now, so safe varies by that moment.
	case ready && safe-p.until >= p.plan.Interval/4:
		p.until = safe
		return noticeExtended, now
	case now >= p.until:
		return noticeLost, now
	case shorter:
		return noticeExtended, now
	}
	return noticeNone, min(now+p.plan.Interval, p.until)
}
