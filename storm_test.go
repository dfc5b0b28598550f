package zklock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// storm is many goroutines that take one lock through a network that breaks.
type storm struct {
	t      *testing.T
	mu     sync.Mutex // guards what follows
	holder *zklock.Hold
	last   int64
	grants int
}

// took notes a grant: whoever held before must not hold any more, at this very
// moment, and tokens must grow.
func (s *storm) took(h *zklock.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Err() != nil { // lost in the meantime, so it says nothing about others
		return
	}
	if s.holder != nil && s.holder.Err() == nil {
		s.t.Errorf("token %d is granted while %d is held", h.Token(), s.holder.Token())
	}
	if h.Token() <= s.last {
		s.t.Errorf("token %d after %d", h.Token(), s.last)
	}
	s.holder, s.last = h, h.Token()
	s.grants++
}

// worker acquires, tries, gives up and releases until ctx ends.
func (s *storm) worker(ctx context.Context, l *zklock.Lock, r *rand.Rand) {
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, time.Duration(r.Int64N(int64(4*timeout))))
		var h *zklock.Hold
		var err error
		if r.IntN(3) == 0 {
			h, err = l.TryAcquire(wait)
		} else {
			h, err = l.Acquire(wait)
		}
		if err == nil {
			s.took(h)
			time.Sleep(time.Duration(r.Int64N(int64(timeout / 8))))
			_ = h.Release(wait) // lost, unconfirmed or done: all happen here
		} else if !errors.Is(err, zklock.ErrLocked) && !errors.Is(err, wait.Err()) && !errors.Is(err, zklock.ErrClosed) {
			s.t.Errorf("acquire: %v", err)
		}
		cancel()
		time.Sleep(time.Duration(r.Int64N(int64(timeout / 20))))
	}
}

// trouble breaks the network until ctx ends.
func (s *storm) trouble(ctx context.Context, srv *zktest.Server, r *rand.Rand) {
	for ctx.Err() == nil {
		switch r.IntN(7) {
		case 0:
			srv.CutConnections()
		case 1:
			srv.HalfOpen()
		case 2:
			srv.DropReply(zktest.Match{Skip: r.IntN(4)})
		case 3:
			srv.DropRequest(zktest.Match{Skip: r.IntN(4)})
		case 4:
			srv.Delay(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
		case 5:
			srv.Blackhole(true)
			time.Sleep(time.Duration(r.Int64N(int64(2 * timeout))))
			srv.Blackhole(false)
		case 6:
			srv.Crash()
			srv.Restart(s.t)
		}
		time.Sleep(time.Duration(r.Int64N(int64(timeout))))
	}
}

// TestStorm: whatever breaks, one holds at a time by its own word, tokens grow,
// clients that come and go leave nothing, and no goroutine stays.
func TestStorm(t *testing.T) {
	seeds := uint64(storms)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			s := &storm{t: t}
			r := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
			shared := srv.Dial(t)
			clients := []*zklock.Client{dial(t, srv), dial(t, srv), zklock.New(shared, nil), zklock.New(shared, nil)}
			ctx, cancel := context.WithTimeout(t.Context(), 100*timeout)
			defer cancel()
			var all sync.WaitGroup
			for i, c := range clients {
				for j := range 3 {
					all.Go(func() { s.worker(ctx, c.Mutex("storm"), r(uint64(10*i+j))) })
				}
			}
			all.Go(func() { s.trouble(ctx, srv, r(99)) })
			// Two of them are closed in the midst of it.
			time.Sleep(time.Duration(r(98).Int64N(int64(90 * timeout))))
			for _, c := range clients[1:3] {
				all.Go(func() { _ = c.Close() }) // perhaps without the servers' word
			}
			all.Wait()
			srv.Delay(0)
			if err := clients[3].Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(30 * time.Second) // sessions whose end was not confirmed have expired
			op := srv.Dial(t)
			names, _, err := op.Children(t.Context(), "/zklock/storm")
			if err != nil && !errors.Is(err, zk.ErrNoNode) || len(names) != 0 {
				t.Errorf("seed %d: %v are left, %v", seed, names, err)
			}
			if s.grants < 50 {
				t.Errorf("seed %d: %d grants only: the storm shows nothing", seed, s.grants)
			}
			t.Logf("seed %d: %d grants", seed, s.grants)
		})
	}
}
