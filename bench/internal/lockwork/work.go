package lockwork

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is a kind of lock.
type Kind string

// The kinds.
const (
	Mutex     Kind = "mutex"
	ReadWrite Kind = "readwrite"
	Semaphore Kind = "semaphore"
)

// Work is one workload.
type Work struct {
	// Path is the parent of the locks, a new one for each run.
	Path string
	Kind Kind
	// Sessions, Workers and Locks are the numbers of these. Worker i uses session i and
	// lock i, modulo their numbers.
	Sessions, Workers, Locks int
	// Time is the duration of the work. Zero means to drain a queue instead: every worker
	// waits once for a holder, which releases the lock when all of them wait.
	Time time.Duration
	// Readers is the percentage of acquires by readers.
	Readers int
	// Permits is the size of a semaphore.
	Permits int
	// Held is the number of other locks that the first session holds during the work.
	Held int
	// Async means to release without waiting for the answer, if the library can.
	Async bool
	// Local is the largest number of consecutive holds within a session that may share an
	// entry, if the library supports it; 0 means none.
	Local int
}

// ErrWork is wrapped by errors about a line that is not a work or a result.
var ErrWork = errors.New("lockwork: invalid line")

// String returns the line that [ParseWork] parses.
func (w Work) String() string {
	return fmt.Sprintf("path=%s kind=%s sessions=%d workers=%d locks=%d millis=%d readers=%d permits=%d held=%d async=%d local=%d",
		w.Path, w.Kind, w.Sessions, w.Workers, w.Locks, w.Time.Milliseconds(), w.Readers, w.Permits, w.Held, number(w.Async), w.Local)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// words parses "key=value key=value". The values are integers, except those of the keys in
// text.
func words(line string, text map[string]*string) (map[string]int64, error) {
	numbers := make(map[string]int64)
	for _, word := range strings.Fields(line) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%w: %.100q: word %.40q without =", ErrWork, line, word)
		}
		if s := text[key]; s != nil {
			*s = value
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %.100q: %s: %w", ErrWork, line, key, err)
		}
		numbers[key] = n
	}
	return numbers, nil
}

// ParseWork parses a line that [Work.String] returned.
func ParseWork(line string) (Work, error) {
	var w Work
	var kind string
	n, err := words(line, map[string]*string{"path": &w.Path, "kind": &kind})
	if err != nil {
		return w, err
	}
	w.Kind = Kind(kind)
	w.Sessions, w.Workers, w.Locks = int(n["sessions"]), int(n["workers"]), int(n["locks"])
	w.Time = time.Duration(n["millis"]) * time.Millisecond
	w.Readers, w.Permits, w.Held, w.Async = int(n["readers"]), int(n["permits"]), int(n["held"]), n["async"] != 0
	w.Local = int(n["local"])
	return w, w.check()
}

func (w *Work) check() error {
	switch {
	case w.Sessions < 1 || w.Workers < 1 || w.Locks < 1:
		return fmt.Errorf("%w: %v: sessions, workers and locks are at least 1", ErrWork, w)
	case w.Kind != Mutex && w.Kind != ReadWrite && w.Kind != Semaphore:
		return fmt.Errorf("%w: kind %.40q", ErrWork, w.Kind)
	case w.Kind == Semaphore && w.Permits < 1:
		return fmt.Errorf("%w: %v: a semaphore has at least 1 permit", ErrWork, w)
	case w.Time < 0 || w.Held < 0 || w.Local < 0:
		return fmt.Errorf("%w: %v: negative", ErrWork, w)
	case w.Time == 0 && (w.Locks != 1 || w.Kind != Mutex):
		return fmt.Errorf("%w: %v: only one mutex is drained", ErrWork, w)
	}
	return nil
}

// Lock returns the path of a worker's lock.
func (w *Work) Lock(worker int) string { return fmt.Sprintf("%s/lock-%05d", w.Path, worker%w.Locks) }

// loops reports whether a [Looper] does the work in its own loop.
func (w *Work) loops() bool {
	if w.Kind != Mutex || w.Time == 0 || w.Workers == 1 || w.Async || w.Held > 0 || w.Local > 0 {
		return false
	}
	return w.Locks == 1 && w.Sessions == w.Workers || w.Sessions == 1 && w.Locks == w.Workers
}
