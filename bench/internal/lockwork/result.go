package lockwork

import (
	"errors"
	"fmt"
	"time"
)

// Result is what came of a work.
type Result struct {
	// Cycles is how many acquires were released again within Time.
	Cycles int64
	Time   time.Duration
	// HandOver50 and HandOver99 are how long it took from the call of a release to
	// the return of the waiting acquire that got the lock next, in the middle
	// and at 99 of 100. 0 where nobody waited.
	HandOver50, HandOver99 time.Duration
	// Violations counts holders who were not alone where they had to be.
	Violations int64
	// Heap is by how much the live memory of the process grew by Work.Held locks, or
	// by the waiters of a queue that drains; 0 where a library's language does not tell.
	Heap int64
	// Read is how many bytes the process read while a queue drained, and FirstTenth
	// and LastTenth are how long the grants of its first and its last tenth took; 0
	// where a library's language does not tell.
	Read                  int64
	FirstTenth, LastTenth time.Duration
}

// ErrNothing says that no cycle was done in the time there was.
var ErrNothing = errors.New("lockwork: nothing was done")

// String is the line that [ParseResult] reads.
func (r Result) String() string {
	return fmt.Sprintf("cycles=%d nanos=%d ho50=%d ho99=%d violations=%d heap=%d read=%d first=%d last=%d",
		r.Cycles, r.Time.Nanoseconds(), r.HandOver50.Nanoseconds(), r.HandOver99.Nanoseconds(), r.Violations, r.Heap,
		r.Read, r.FirstTenth.Nanoseconds(), r.LastTenth.Nanoseconds())
}

// ParseResult reads what [Result.String] gives.
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

// Rate is cycles a second.
func (r Result) Rate() float64 { return float64(r.Cycles) / r.Time.Seconds() }
