package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock"
)

// testContention runs many goroutines of several clients, some of which cancel at random. It
// checks that never two hold, that tokens grow, and that no entry is left.
func testContention(e *env) {
	const clients, rounds = 4, 6
	workers := 100
	if e.target.Kind.Name != "" {
		workers = 24 // there are many kinds
	}
	var (
		holding atomic.Int32
		last    atomic.Int64
		grants  atomic.Int32
		gaveUp  atomic.Int32
		all     sync.WaitGroup
	)
	var locks []*zklock.Lock
	for range clients {
		locks = append(locks, e.lock(e.dial(), e.name))
	}
	for w := range workers {
		r := rand.New(rand.NewPCG(uint64(w), 1))
		all.Go(func() { // ends after its rounds
			for range rounds {
				ctx, cancel := context.WithCancel(e.ctx)
				if r.IntN(3) == 0 {
					ctx, cancel = context.WithTimeout(e.ctx, time.Duration(r.Int64N(int64(200*time.Millisecond))))
				}
				h, err := locks[w%clients].Acquire(ctx)
				cancel()
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) || e.ctx.Err() != nil {
						e.Errorf("acquire: %v", err)
					}
					gaveUp.Add(1)
					continue
				}
				if n := holding.Add(1); n != 1 {
					e.Errorf("%d hold at once", n)
				}
				if before := last.Swap(e.token(h)); before >= e.token(h) {
					e.Errorf("token %d after %d", e.token(h), before)
				}
				if err := h.Err(); err != nil {
					e.Errorf("a fresh hold: %v", err)
				}
				grants.Add(1)
				<-time.After(time.Duration(r.Int64N(int64(2 * time.Millisecond)))) // some work
				holding.Add(-1)
				if err := h.Release(e.ctx); err != nil {
					e.Errorf("release: %v", err)
				}
			}
		})
	}
	all.Wait()
	if int(grants.Load()) < workers || grants.Load()+gaveUp.Load() != int32(workers*rounds) {
		e.Errorf("only %d grants, %d canceled", grants.Load(), gaveUp.Load())
	}
	e.Logf("%d grants, %d canceled", grants.Load(), gaveUp.Load())
	e.empty(locks[0])
}
