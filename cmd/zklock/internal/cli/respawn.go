package cli

import (
	"math"
	"time"
)

// Pauses before another watchdog is started. The first comes at once. One that
// something ends again and again, as a limit of memory or of processes does, is
// tried at longer and longer intervals; one that has lived for a while was well.
const (
	respawnFirst = 100 * time.Millisecond
	respawnMost  = 10 * time.Second
	respawnWell  = time.Minute
)

// forever is later than anything on the boot clock.
const forever = time.Duration(math.MaxInt64)

// respawn says when to start another watchdog. It belongs to one goroutine.
type respawn struct {
	start  func() (guarding, error)
	at     time.Duration // the next start, not before this
	pause  time.Duration // after the next death
	begun  time.Duration // the last start
	warned bool
}

// tried notes a start.
func (r *respawn) tried(now time.Duration) { r.begun = now }

// died notes that what was started last has ended, or could not be started.
func (r *respawn) died(now time.Duration) {
	if now-r.begun >= respawnWell {
		r.pause = 0
	}
	r.at = now + r.pause
	r.pause = min(max(2*r.pause, respawnFirst), respawnMost)
}
