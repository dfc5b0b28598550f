package locks

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
)

// printInterval is how often ls prints new results during a long search. A shorter search
// prints all locks in path order.
const printInterval = 500 * time.Millisecond

// listing prints locks during the search that finds them.
type listing struct {
	out     *cli.Output
	to      io.Writer
	table   lockTable
	line    *cli.Progress
	printed bool // a lock was printed

	mu    sync.Mutex
	found []*inspect.Lock // not printed yet
}

// run searches and prints. search may call found from any goroutine, and ends before run
// returns; stop makes it end.
func (l *listing) run(search func(found func(*inspect.Lock)) error, stop func()) error {
	ended := make(chan error, 1)
	go func() { ended <- search(l.add) }() // run waits for it
	tick := time.NewTicker(printInterval)
	defer tick.Stop()
	for {
		select {
		case why := <-ended:
			// If the search stopped early, print what it found: a large ensemble
			// allows no more.
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

// add adds a lock that was found.
func (l *listing) add(s *inspect.Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = append(l.found, s)
}

// flush prints the locks that were found since the last flush.
func (l *listing) flush() error {
	l.mu.Lock()
	found := l.found
	l.found = nil
	l.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b *inspect.Lock) int { return strings.Compare(a.Path, b.Path) })
	l.line.Erase()
	l.printed = true
	return l.out.Write(l.to, lockList(found, &l.table, time.Now()))
}
