package netutil

import (
	"sync"
	"time"
)

const (
	// LogBurst is how many lines of one kind are logged at once, and logEvery the time
	// after which another one may follow: a client that connects in a loop must not fill
	// the disk. In the worst case about 20 MB a day are logged.
	LogBurst = 20
	logEvery = time.Second
)

// LogLimiter lets a burst of log lines pass and then one line at a time. It counts the
// lines that it drops; the next line that passes reports how many. The zero value is ready.
type LogLimiter struct {
	mu      sync.Mutex
	began   bool
	tokens  int
	filled  time.Duration // when tokens was updated
	skipped int64
}

// Allow reports whether a line may be logged at the time now, and how many lines were
// dropped since the last one.
func (l *LogLimiter) Allow(now time.Duration) (skipped int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.began {
		l.began, l.tokens, l.filled = true, LogBurst, now
	}
	if n := (now - l.filled) / logEvery; n > 0 {
		l.tokens = int(min(int64(l.tokens)+int64(n), LogBurst))
		l.filled += n * logEvery
	}
	if l.tokens == 0 {
		l.skipped++
		return 0, false
	}
	l.tokens--
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}
