package bench

import (
	"fmt"
	"slices"
	"time"
)

// A Row is what one experiment found.
type Row struct {
	Recipe   Recipe
	Waiters  int // how many waited at each release
	Sessions int // how many sessions all contenders had, the holder's included
	Releases int // how many were counted; 0 if none was, and then Err says why

	Release Traffic // what all releases cost, up to the next grant and until all was quiet
	Arrival Traffic // what as many arrivals at the back cost
	// Fewest and Most are the least and the greatest number of other sessions that one
	// release woke.
	Fewest, Most int64
	// Latencies are the times from the releases to the next grants, sorted.
	Latencies []time.Duration

	// Note tells of what differs from what was asked for, such as fewer sessions.
	Note string
	// Err is why the experiment ended early or has no figures.
	Err error
}

// Figures are a traffic for each of a number of releases.
type Figures struct {
	Woken         float64 `json:"woken"`
	Notifications float64 `json:"notifications"`
	Own           float64 `json:"own_notifications"`
	Requests      float64 `json:"requests"`
	Bytes         float64 `json:"bytes"`
}

// over divides a traffic by a number; by 0 it is 0, for rows without figures.
func (t Traffic) over(n int) Figures {
	if n == 0 {
		return Figures{}
	}
	by := float64(n)
	return Figures{float64(t.Woken) / by, float64(t.Notifications) / by, float64(t.Own) / by, float64(t.Requests) / by, float64(t.Bytes) / by}
}

// PerRelease returns what a release cost in the mean.
func (r *Row) PerRelease() Figures { return r.Release.over(r.Releases) }

// PerArrival returns what an arrival at the back of n-1 waiters cost in the mean.
func (r *Row) PerArrival() Figures { return r.Arrival.over(r.Releases) }

// Median returns the middle latency, the greater of two, 0 if there is none.
func (r *Row) Median() time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[len(r.Latencies)/2]
}

// Slowest returns the greatest latency, 0 if there is none.
func (r *Row) Slowest() time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[len(r.Latencies)-1]
}

// count takes a release into the row, and the arrival that followed.
func (r *Row) count(release, arrival Traffic, latency time.Duration) {
	if r.Releases == 0 || release.Woken < r.Fewest {
		r.Fewest = release.Woken
	}
	r.Most = max(r.Most, release.Woken)
	r.Releases++
	r.Release.add(release)
	r.Arrival.add(arrival)
	i, _ := slices.BinarySearch(r.Latencies, latency)
	r.Latencies = slices.Insert(r.Latencies, i, latency)
}

// note adds to what differs from what was asked for.
func (r *Row) note(format string, args ...any) {
	if r.Note != "" {
		r.Note += "; "
	}
	r.Note += fmt.Sprintf(format, args...)
}
