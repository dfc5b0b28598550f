package bench

import (
	"math"
	"strings"
	"time"
)

// scale maps positive numbers to a stretch of the picture, logarithmically.
type scale struct {
	low, high float64 // logarithms to the base of ten at the stretch's ends
	from, to  float64 // where the ends are
}

// at returns where v is. What is below the scale is at its low end, and so is
// zero, which has no logarithm: a recipe that wakes nobody is drawn as the best.
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

// decades returns the powers of ten on the scale, its ends included in spite of
// the errors of logarithms.
func (s scale) decades() (all []float64) {
	for e := math.Ceil(s.low - 1e-9); e <= s.high+1e-9; e++ {
		all = append(all, math.Pow(10, e))
	}
	return all
}

// metric is one thing that a picture shows of rows.
type metric struct {
	id, title string
	of        func(*Row) float64
	label     func(float64) string
}

// metrics returns what the picture shows. Requests are not among them: their
// lines are those of the sessions, a little higher.
func metrics() []metric {
	return []metric{
		{"woken", "other sessions woken", func(r *Row) float64 { return r.PerRelease().Woken }, number},
		{"bytes", "bytes, both ways", func(r *Row) float64 { return r.PerRelease().Bytes }, volume},
		{"latency", "time to the next grant", func(r *Row) float64 { return r.Median().Seconds() },
			func(v float64) string { return span(time.Duration(math.Round(v * float64(time.Second)))) }},
	}
}

// tick writes a metric's value beside an axis: without zeros that say nothing.
func (m metric) tick(v float64) string {
	return strings.NewReplacer(".00 ", " ", ".0 ", " ").Replace(m.label(v))
}

// heights returns the scale of a metric over whole decades, for all rows: the
// panels of mutexes and of read-write locks can then be compared by eye.
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

// widths returns the scale of the numbers of waiters, from the least to the
// greatest.
func widths(rows []Row, from, to float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range rows {
		v := math.Log10(float64(r.Waiters))
		low, high = min(low, v), max(high, v)
	}
	return scale{low, high, from, to}
}
