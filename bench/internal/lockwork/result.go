package lockwork

import (
	"errors"
	"fmt"
	"time"
)

// A Result is the outcome of a work.
type Result struct {
	// Cycles is the number of acquires that were also released within Time.
	Cycles int64
	Time   time.Duration
	// HandOver50 and HandOver99 are the median and the 99th percentile of the time from the
	// call of a release until the acquire of the next waiter returned, or 0 if no worker
	// waited.
	HandOver50, HandOver99 time.Duration
	// Violations counts violations of mutual exclusion.
	Violations int64
	// Heap is the growth of the process's live memory by Work.Held locks, or by the waiters
	// of a queue that drains. It is 0 if the library's language does not report it.
	Heap int64
	// Read is the number of bytes that the process read while a queue drained. FirstTenth and
	// LastTenth are the durations of the first and the last tenth of its grants. All are 0
	// if the library's language does not report them.
	Read                  int64
	FirstTenth, LastTenth time.Duration
}

// ErrNothing means that no cycle completed in the available time.
var ErrNothing = errors.New("lockwork: nothing was done")

// String returns the line that [ParseResult] parses.
func (r Result) String() string {
	return fmt.Sprintf("cycles=%d nanos=%d ho50=%d ho99=%d violations=%d heap=%d read=%d first=%d last=%d",
		r.Cycles, r.Time.Nanoseconds(), r.HandOver50.Nanoseconds(), r.HandOver99.Nanoseconds(), r.Violations, r.Heap,
		r.Read, r.FirstTenth.Nanoseconds(), r.LastTenth.Nanoseconds())
}

// ParseResult parses a line that [Result.String] returned.
func ParseResult(line string) (Result, error) {
	n, err := words(line, nil)
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Cycles: n["cycles"], Time: time.Duration(n["nanos"]),
		HandOver50: time.Duration(n["ho50"]), HandOver99: time.Duration(n["ho99"]),
		Violations: n["violations"], Heap: n["heap"],
		Read: n["read"], FirstTenth: time.Duration(n["first"]), LastTenth: time.Duration(n["last"]),
	}
	if r.Cycles <= 0 || r.Time <= 0 {
		return r, fmt.Errorf("%w: %.100q", ErrNothing, line)
	}
	return r, nil
}

// Rate returns the cycles per second.
func (r Result) Rate() float64 { return float64(r.Cycles) / r.Time.Seconds() }
