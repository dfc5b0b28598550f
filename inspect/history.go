package inspect

import "time"

// A History is what a [Watcher] saw of one lock, or of all locks, since its start. It is
// exact while the watcher receives all events: it has no changes from times without a
// connection. Servers before ZooKeeper 3.9 do not tell which changes were one transaction.
// If one session has several entries in a queue when it ends, the history then counts each
// as if it had been granted the lock.
type History struct {
	Since  time.Time `json:"since"`
	Grants int64     `json:"grants"` // entries that were granted a lock
	// Releases counts all holds that ended. Losses counts those of them that were certainly
	// not released: a hold that [Watcher.Break] deleted, that left a lock-delay record, or
	// that ended in one transaction with other holds of its session, because the session
	// expired or was closed. The end of a session with a single hold looks like a release.
	Releases int64 `json:"releases"`
	Losses   int64 `json:"losses"`
	Broken   int64 `json:"broken"` // of the losses: deleted by Break
	Canceled int64 `json:"gaveUp"` // entries that left before a grant
	// Wait is the time from the creation of an entry to its grant, and Hold from the
	// grant to the end, both as the watcher saw them. They include only entries whose
	// start was seen. A permit's wait begins when its entry arrives at the gate.
	Wait DurationStats `json:"wait"`
	Hold DurationStats `json:"hold"`
	// Points are the last hour in steps of Step seconds, oldest first, without steps in
	// which nothing happened. If the histories of all locks take much memory, the watcher
	// drops points of some.
	Step   int     `json:"step"`
	Points []Point `json:"points"`
}

// DurationStats are statistics of durations, in seconds. The quantiles are accurate to a
// tenth.
type DurationStats struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// A Point is one step of a [History].
type Point struct {
	At     time.Time     `json:"at"` // start of the step
	Grants int64         `json:"grants"`
	Losses int64         `json:"losses"`
	Wait   DurationStats `json:"wait"` // of the grants in this step
	Hold   DurationStats `json:"hold"` // of the holds that ended in this step
}

// Steps of histories, and how far back they go.
const (
	stepOfAll = 10 * time.Second
	stepOfOne = time.Minute
	hour      = time.Hour
)

// recorder collects a history.
type recorder struct {
	step                                       time.Duration
	grants, releases, losses, broken, canceled int64
	wait, hold                                 durationCounts
	points                                     []point
}

// point is a step in progress.
type point struct {
	at             time.Time
	grants, losses int64
	wait, hold     durationCounts
}

// pointAt returns the step that contains the present time. If the clock was set back by less
// than a step, it returns the last step. If by more, it drops the steps after now: otherwise
// all that follows would be counted there until the clock reaches them.
func (c *recorder) pointAt(now time.Time) *point {
	begin := now.Truncate(c.step)
	for n := len(c.points); n > 0 && c.points[n-1].at.Sub(begin) > c.step; n-- {
		c.points = c.points[:n-1]
	}
	if n := len(c.points); n == 0 || c.points[n-1].at.Before(begin) {
		old := 0
		for old < n && now.Sub(c.points[old].at) > hour {
			old++
		}
		c.points = append(c.points[old:], point{at: begin})
	}
	return &c.points[len(c.points)-1]
}

// granted counts a grant; a negative wait is unknown.
func (c *recorder) granted(now time.Time, wait time.Duration) {
	p := c.pointAt(now)
	c.grants++
	p.grants++
	if wait >= 0 {
		c.wait.add(wait)
		p.wait.add(wait)
	}
}

// retract removes a grant that was counted in error, a moment ago.
func (c *recorder) retract(m member) {
	p := &point{} // the watcher may have dropped the step
	if n := len(c.points); n > 0 {
		p = &c.points[n-1] // or the step before
	}
	c.grants--
	p.grants = max(0, p.grants-1)
	if !m.arrived.IsZero() {
		wait := m.granted.Sub(m.arrived)
		c.wait.remove(wait)
		p.wait.remove(wait)
	}
}

// released counts the end of a hold; a negative duration is unknown.
func (c *recorder) released(now time.Time, held time.Duration) {
	p := c.pointAt(now)
	c.releases++
	if held >= 0 {
		c.hold.add(held)
		p.hold.add(held)
	}
}

// lost counts a loss. The hold was already counted as a release.
func (c *recorder) lost(now time.Time, broken bool) {
	c.losses++
	c.pointAt(now).losses++
	if broken {
		c.broken++
	}
}

// history returns what was collected since a time.
func (c *recorder) history(since, now time.Time) History {
	h := History{
		Since: since, Grants: c.grants, Releases: c.releases, Losses: c.losses, Broken: c.broken, Canceled: c.canceled,
		Wait: c.wait.times(), Hold: c.hold.times(), Step: int(c.step / time.Second), Points: []Point{},
	}
	for _, p := range c.points {
		if now.Sub(p.at) <= hour {
			h.Points = append(h.Points, Point{At: p.at, Grants: p.grants, Losses: p.losses, Wait: p.wait.times(), Hold: p.hold.times()})
		}
	}
	return h
}
