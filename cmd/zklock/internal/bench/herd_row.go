package bench

import (
	"fmt"
	"slices"
	"time"
)

// A Row is the result of one experiment.
type Row struct {
	Recipe   Recipe
	Waiters  int // number of waiters at each release
	Sessions int // number of sessions of all contenders, including the holder's
	Releases int // number of counted releases; if it is 0, Err says why

	Release Traffic // cost of all releases, until the next grant and the end of all traffic
	Arrival Traffic // cost of as many arrivals at the end of the queue
	// Fewest and Most are the smallest and the largest number of other sessions that one
	// release woke.
	Fewest, Most int64
	// Latencies are the times from the releases to the next grants, sorted.
	Latencies []time.Duration

	// Note says what differs from the request, such as fewer sessions.
	Note string
	// Err is why the experiment ended early or has no figures.
	Err error
}

// Figures are the traffic per release.
type Figures struct {
	Woken         float64 `json:"woken"`
	Notifications float64 `json:"notifications"`
	Own           float64 `json:"own_notifications"`
	Requests      float64 `json:"requests"`
	Bytes         float64 `json:"bytes"`
}

// over divides a traffic by a number. For 0, which means a row without figures, it returns
// 0.
func (t Traffic) over(n int) Figures {
	if n == 0 {
		return Figures{}
	}
	by := float64(n)
	return Figures{float64(t.Woken) / by, float64(t.Notifications) / by, float64(t.Own) / by, float64(t.Requests) / by, float64(t.Bytes) / by}
}

// PerRelease returns the mean cost of a release.
func (r *Row) PerRelease() Figures { return r.Release.over(r.Releases) }

// PerArrival returns the mean cost of an arrival behind n-1 waiters.
func (r *Row) PerArrival() Figures { return r.Arrival.over(r.Releases) }

// Median returns the median latency, the larger of two middle values, or 0 if there is
// none.
func (r *Row) Median() time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[len(r.Latencies)/2]
}

// Slowest returns the largest latency, or 0 if there is none.
func (r *Row) Slowest() time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[len(r.Latencies)-1]
}

// count adds a release and the arrival after it to the row.
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

// note adds a remark about a difference from the request.
func (r *Row) note(format string, args ...any) {
	if r.Note != "" {
		r.Note += "; "
	}
	r.Note += fmt.Sprintf(format, args...)
}
