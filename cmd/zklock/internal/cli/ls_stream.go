package cli

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/survey"
)

// lsEvery is how often a walk that takes long has what it found printed. One that
// ends sooner has its locks in the order of their paths.
const lsEvery = 500 * time.Millisecond

// listing prints locks while the walk that finds them goes on.
type listing struct {
	out   *output
	to    io.Writer
	lines lining
	begun bool // the titles were printed

	mu    sync.Mutex
	found []*survey.Lock // and not printed yet
}

// run walks and prints. The walk, which calls found from any goroutine, ends before
// run does; stop asks it to.
func (l *listing) run(walk func(found func(*survey.Lock)) error, stop func()) error {
	ended := make(chan error, 1)
	go func() { ended <- walk(l.add) }() // run waits for it
	tick := time.NewTicker(lsEvery)
	defer tick.Stop()
	for {
		select {
		case why := <-ended:
			// What was found is printed even if the walk had to stop: on a large
			// ensemble that is what there is to be had.
			if err := l.flush(); err != nil {
				return err
			}
			return why
		case <-tick.C:
			if err := l.flush(); err != nil {
				stop()
				<-ended
				return err
			}
		}
	}
}

// add takes a lock.
func (l *listing) add(s *survey.Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = append(l.found, s)
}

// flush prints what was found since the last time.
func (l *listing) flush() error {
	l.mu.Lock()
	found := l.found
	l.found = nil
	l.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b *survey.Lock) int { return strings.Compare(a.Path, b.Path) })
	s := lockList(found)
	s.table = func(out io.Writer) error { return l.table(out, found, time.Now()) }
	return l.out.write(l.to, s)
}

// table prints lines below those that were printed before.
func (l *listing) table(out io.Writer, found []*survey.Lock, now time.Time) error {
	if !l.begun {
		l.begun = true
		l.lines.add(listHeader())
	}
	for _, s := range found {
		l.lines.add(listRow(s, now))
	}
	return l.lines.flush(out)
}
