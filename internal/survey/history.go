package survey

import "time"

// A History is what a [Survey] saw of one lock, or of all, since its start. It is
// exact where every change was told of: what came and went while there was no
// connection is not in it. Servers before ZooKeeper 3.9 do not say which changes were
// one transaction: of several entries of one session in one queue, which end with it,
// each then counts as if it had got the lock in turn.
type History struct {
	Since  time.Time `json:"since"`
	Grants int64     `json:"grants"` // entries that were seen to get a lock
	// Releases are the holds that ended, however they did; Losses those of them
	// that are known not to have been given back: broken by [Survey.Break], or left
	// with the record of a lock delay, or ended in one transaction with other holds
	// of their session, as a session does that expires or is closed. Nobody can tell
	// the end of a session with one hold from a release.
	Releases int64 `json:"releases"`
	Losses   int64 `json:"losses"`
	Broken   int64 `json:"broken"` // of the losses: taken away by Break
	GaveUp   int64 `json:"gaveUp"` // entries that left before they got the lock
	// Wait is the time from an entry's coming to its grant, Hold from the grant to
	// its leaving, both as they were seen from here, and of those alone whose
	// beginning was seen. A permit's wait is that of the place at the gate.
	Wait Times `json:"wait"`
	Hold Times `json:"hold"`
	// Points are the last hour in steps of Step seconds, the oldest first, without
	// those in which nothing happened.
	Step   int     `json:"step"`
	Points []Point `json:"points"`
}

// Times says how long something took, in seconds. The quantiles are right to a
// tenth of themselves.
type Times struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// A Point is a step of a [History].
type Point struct {
	At     time.Time `json:"at"` // when it began
	Grants int64     `json:"grants"`
	Losses int64     `json:"losses"`
	Wait   Times     `json:"wait"` // of the grants in it
	Hold   Times     `json:"hold"` // of the holds that ended in it
}

// Steps of histories, and how far back they go.
const (
	stepOfAll = 10 * time.Second
	stepOfOne = time.Minute
	hour      = time.Hour
)

// chronicle gathers a history.
type chronicle struct {
	step                                     time.Duration
	grants, releases, losses, broken, gaveUp int64
	wait, hold                               tally
	points                                   []point
}

// point is a step under way.
type point struct {
	at             time.Time
	grants, losses int64
	wait, hold     tally
}

// at returns the step that a moment is in. Clocks that go back add to the last one.
func (c *chronicle) at(now time.Time) *point {
	begin := now.Truncate(c.step)
	if n := len(c.points); n == 0 || c.points[n-1].at.Before(begin) {
		old := 0
		for old < n && now.Sub(c.points[old].at) > hour {
			old++
		}
		c.points = append(c.points[old:], point{at: begin})
	}
	return &c.points[len(c.points)-1]
}

// granted counts a grant; a wait below 0 is not known.
func (c *chronicle) granted(now time.Time, wait time.Duration) {
	p := c.at(now)
	c.grants++
	p.grants++
	if wait >= 0 {
		c.wait.add(wait)
		p.wait.add(wait)
	}
}

// retract takes back a grant that was none.
func (c *chronicle) retract(m member) {
	c.grants--
	p := c.at(m.granted) // or the step after it
	p.grants = max(0, p.grants-1)
	if !m.came.IsZero() {
		wait := m.granted.Sub(m.came)
		c.wait.remove(wait)
		p.wait.remove(wait)
	}
}

// released counts the end of a hold; a length below 0 is not known.
func (c *chronicle) released(now time.Time, held time.Duration) {
	p := c.at(now)
	c.releases++
	if held >= 0 {
		c.hold.add(held)
		p.hold.add(held)
	}
}

// lost counts a loss, which was counted as a release before.
func (c *chronicle) lost(now time.Time, broken bool) {
	c.losses++
	c.at(now).losses++
	if broken {
		c.broken++
	}
}

// history is what was gathered since a moment.
func (c *chronicle) history(since, now time.Time) History {
	h := History{
		Since: since, Grants: c.grants, Releases: c.releases, Losses: c.losses, Broken: c.broken, GaveUp: c.gaveUp,
		Wait: c.wait.times(), Hold: c.hold.times(), Step: int(c.step / time.Second), Points: []Point{},
	}
	for _, p := range c.points {
		if now.Sub(p.at) <= hour {
			h.Points = append(h.Points, Point{At: p.at, Grants: p.grants, Losses: p.losses, Wait: p.wait.times(), Hold: p.hold.times()})
		}
	}
	return h
}
