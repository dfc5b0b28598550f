package survey

import "time"

// A History is what a [Survey] saw of one lock, or of all, since its start.
type History struct {
	Since  time.Time `json:"since"`
	Grants int64     `json:"grants"` // entries that were seen to get a lock
	// Releases are the holds that ended, however they did; Losses those of them
	// that are known not to have been given back: broken through this page, or
	// ended together with all else of their session, as a session that expires.
	Releases int64 `json:"releases"`
	Losses   int64 `json:"losses"`
	Broken   int64 `json:"broken"` // of the losses: taken away by break, here
	GaveUp   int64 `json:"gaveUp"` // entries that left before they got the lock
	// Wait is the time from an entry's coming to its grant, Hold from the grant to
	// its leaving, both as they were seen from here: of those alone whose beginning
	// was seen.
	Wait Times `json:"wait"`
	Hold Times `json:"hold"`
	// Points are the last hour in steps of ten seconds, the oldest first, without
	// those in which nothing happened.
	Points []Point `json:"points"`
}

// Times says how long something took, in seconds.
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
