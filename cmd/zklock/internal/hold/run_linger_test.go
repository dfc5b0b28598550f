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

// lasting is a hold that ends when it is told to.
type lasting struct {
	revocable
	done, revoked chan struct{}
}

func (l lasting) Done() <-chan struct{}    { return l.done }
func (l lasting) Revoked() <-chan struct{} { return l.revoked }

// TestLinger: a lock is kept for its least time from the command's start on, but
// for no reason to give it back.
func TestLinger(t *testing.T) {
	for name, c := range map[string]struct {
		atLeast, ran time.Duration
		after        func(l lasting, signals chan<- os.Signal)
		want         time.Duration
	}{
		"the rest of it":  {atLeast: 30 * time.Second, ran: 10 * time.Second, want: 20 * time.Second},
		"none is left":    {atLeast: 30 * time.Second, ran: 40 * time.Second},
		"none was asked":  {ran: time.Second},
		"the hold's loss": {atLeast: time.Minute, after: func(l lasting, _ chan<- os.Signal) { close(l.done) }, want: 5 * time.Second},
		"another's wish":  {atLeast: time.Minute, after: func(l lasting, _ chan<- os.Signal) { close(l.revoked) }, want: 5 * time.Second},
		"a signal":        {atLeast: time.Minute, after: func(_ lasting, s chan<- os.Signal) { s <- syscall.SIGTERM }, want: 5 * time.Second},
		"no ending one":   {atLeast: time.Minute, after: func(_ lasting, s chan<- os.Signal) { s <- syscall.SIGUSR1 }, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, signals := lasting{done: make(chan struct{}), revoked: make(chan struct{})}, make(chan os.Signal, 1)
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
				time.Sleep(10 * time.Second) // the test's own timer
			})
		})
	}
}
