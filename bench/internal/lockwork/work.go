package lockwork

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is what is locked with.
type Kind string

// The kinds.
const (
	Mutex     Kind = "mutex"
	ReadWrite Kind = "readwrite"
	Semaphore Kind = "semaphore"
)

// Work is one thing to measure.
type Work struct {
	// Path is below which the locks are, made anew for each run.
	Path string
	Kind Kind
	// Sessions, Workers and Locks are how many there are: worker i has the
	// session i and the lock i, modulo their numbers.
	Sessions, Workers, Locks int
	// Time is how long to work. Zero means to drain instead: every worker queues
	// once behind a holder that lets go when all of them wait.
	Time time.Duration
	// Readers is how many of a hundred acquires are a reader's.
	Readers int
	// Permits is the count of a semaphore.
	Permits int
	// Held is how many other locks the first session holds meanwhile.
	Held int
	// Async releases without waiting for the answer, where a library can.
	Async bool
	// Local is how many holds in a row may be passed on within a session, where a
	// library can; 0 is none.
	Local int
}

// ErrWork is wrapped by errors about a line that is no work or no result.
var ErrWork = errors.New("lockwork: invalid line")

// String is the line that [ParseWork] reads.
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

// words reads "key=value key=value" of whole numbers but for the keys in text.
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

// ParseWork reads what [Work.String] gives.
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

// Lock is the path of a worker's lock.
func (w *Work) Lock(worker int) string { return fmt.Sprintf("%s/lock-%05d", w.Path, worker%w.Locks) }
