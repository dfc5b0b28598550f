//go:build unix

package hold

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// lingeringHold is a hold that the test ends.
type lingeringHold struct {
	revocable
	done, revoked chan struct{}
}

func (l lingeringHold) Done() <-chan struct{}    { return l.done }
func (l lingeringHold) Revoked() <-chan struct{} { return l.revoked }

// TestLinger checks that a lock is kept for its minimum time from the start of the command,
// unless the hold is lost, a client requests its release, or a signal arrives.
func TestLinger(t *testing.T) {
	for name, c := range map[string]struct {
		atLeast, ran time.Duration
		after        func(l lingeringHold, signals chan<- os.Signal)
		want         time.Duration
	}{
		"time left":                  {atLeast: 30 * time.Second, ran: 10 * time.Second, want: 20 * time.Second},
		"no time left":               {atLeast: 30 * time.Second, ran: 40 * time.Second},
		"no minimum":                 {ran: time.Second},
		"a lost hold":                {atLeast: time.Minute, after: func(l lingeringHold, _ chan<- os.Signal) { close(l.done) }, want: 5 * time.Second},
		"a release request":          {atLeast: time.Minute, after: func(l lingeringHold, _ chan<- os.Signal) { close(l.revoked) }, want: 5 * time.Second},
		"a signal":                   {atLeast: time.Minute, after: func(_ lingeringHold, s chan<- os.Signal) { s <- syscall.SIGTERM }, want: 5 * time.Second},
		"a signal that does not end": {atLeast: time.Minute, after: func(_ lingeringHold, s chan<- os.Signal) { s <- syscall.SIGUSR1 }, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, signals := lingeringHold{done: make(chan struct{}), revoked: make(chan struct{})}, make(chan os.Signal, 1)
				began := time.Now()
				time.Sleep(c.ran)
				if c.after != nil {
					time.AfterFunc(5*time.Second, func() { c.after(l, signals) })
				}
				r := &runner{app: &cli.App{}, flags: &runFlags{atLeast: cli.Duration{D: c.atLeast}}}
				r.linger(l, began, signals)
				if took := time.Since(began) - c.ran; took != c.want {
					t.Errorf("the lock was kept for %v, want %v", took, c.want)
				}
				time.Sleep(10 * time.Second) // until the timer of the test has run
			})
		})
	}
}
