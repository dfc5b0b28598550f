package bench

import (
	"math"
	"strings"
	"time"
)

// scale maps positive numbers to a part of the picture, logarithmically.
type scale struct {
	low, high float64 // logarithms to base ten at the ends
	from, to  float64 // positions of the ends
}

// at returns the position of v. A value below the scale is at its low end. So is zero,
// which has no logarithm: a recipe that wakes no session is drawn as the best.
func (s scale) at(v float64) float64 {
	if s.high <= s.low {
		return (s.from + s.to) / 2
	}
	part := 0.0
	if v > 0 {
		part = min(max((math.Log10(v)-s.low)/(s.high-s.low), 0), 1)
	}
	return s.from + part*(s.to-s.from)
}

// decades returns the powers of ten on the scale, including its ends despite rounding
// errors.
func (s scale) decades() (all []float64) {
	for e := math.Ceil(s.low - 1e-9); e <= s.high+1e-9; e++ {
		all = append(all, math.Pow(10, e))
	}
	return all
}

// metric is a value of rows that the picture shows.
type metric struct {
	id, title string
	of        func(*Row) float64
	label     func(float64) string
}

// metrics returns the metrics of the picture. Requests are not among them, because their
// lines look like those of the sessions.
func metrics() []metric {
	return []metric{
		{"woken", "other sessions woken", func(r *Row) float64 { return r.PerRelease().Woken }, number},
		{"bytes", "bytes, both ways", func(r *Row) float64 { return r.PerRelease().Bytes }, volume},
		{"latency", "time to the next grant", func(r *Row) float64 { return r.Median().Seconds() },
			func(v float64) string { return span(time.Duration(math.Round(v * float64(time.Second)))) }},
	}
}

// tick formats a metric's value for an axis, without a fraction of zero.
func (m metric) tick(v float64) string {
	return strings.NewReplacer(".00 ", " ", ".0 ", " ").Replace(m.label(v))
}

// heights returns the scale of a metric in whole decades for all rows, so that the panels
// of mutexes and of read-write locks have the same scale.
func heights(rows []Row, m metric, from, to float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range rows {
		if v := m.of(&rows[i]); v > 0 && rows[i].Releases > 0 {
			low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
		}
	}
	if low > high {
		low, high = 0, 0 // nothing to show
	}
	return scale{low, max(high, low+1), from, to}
}

// widths returns the scale of the numbers of waiters, from the smallest to the largest.
func widths(rows []Row, from, to float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range rows {
		v := math.Log10(float64(r.Waiters))
		low, high = min(low, v), max(high, v)
	}
	return scale{low, high, from, to}
}
