package hold

import (
	"math"
	"time"
)

// Delays before another watchdog starts. The first one starts at once. If watchdogs die
// again and again, for example because of a memory or process limit, the delays double. A
// watchdog that lives for respawnReset resets them.
const (
	respawnFirst = 100 * time.Millisecond
	respawnMost  = 10 * time.Second
	respawnReset = time.Minute
)

// forever is later than any time of the boot clock.
const forever = time.Duration(math.MaxInt64)

// respawn schedules the starts of watchdogs. It belongs to one goroutine.
type respawn struct {
	start  func() (watchdog, error)
	at     time.Duration // the earliest time of the next start
	delay  time.Duration // after the next death
	began  time.Duration // the last start
	why    error         // why the last one ended or did not start
	warned bool
}

// started records a start.
func (r *respawn) started(now time.Duration) { r.began = now }

// died records why the last watchdog has ended or did not start.
func (r *respawn) died(now time.Duration, why error) {
	r.why = why
	if now-r.began >= respawnReset {
		r.delay, r.warned = 0, false
	}
	r.at = now + r.delay
	r.delay = min(max(2*r.delay, respawnFirst), respawnMost)
}
