package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// guards is guarded writes of znodes that each is made by one only, with what was
// said of them.
type guards struct {
	mu   sync.Mutex // guards said
	said map[string]error
}

func (g *guards) worker(ctx context.Context, c *zklock.Client, r *rand.Rand, id int) {
	for n := 0; ctx.Err() == nil; n++ {
		l := []*zklock.Lock{
			c.RWMutex("g").Writer(), zklock.All(c.Mutex("g"), c.Semaphore("s", 1)), c.Semaphore("s", 1), c.RWMutex("g").Reader(),
		}[r.IntN(4)]
		wait, cancel := context.WithTimeout(ctx, time.Duration(1+r.Int64N(int64(2*timeout))))
		h, err := l.Acquire(wait)
		if err == nil {
			g.use(wait, h, r, fmt.Sprintf("/made/%d-%d", id, n))
		}
		cancel()
		time.Sleep(time.Duration(r.Int64N(int64(timeout / 20))))
	}
}

// use writes while the hold is downgraded, released, or left alone.
func (g *guards) use(ctx context.Context, h *zklock.Hold, r *rand.Rand, name string) {
	var all sync.WaitGroup
	for i := range 3 {
		node := fmt.Sprint(name, "-", i)
		ops := []zk.Op{zk.CreateOp(node, nil, nil, zk.ModePersistent)}
		if r.IntN(4) == 0 {
			ops = append(ops, zk.CheckOp("/made", 99))
		}
		after := time.Duration(r.Int64N(int64(timeout / 8)))
		all.Go(func() {
			time.Sleep(after)
			err := h.Guard(ctx, ops...)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.said[node] = err
		})
	}
	if r.IntN(3) == 0 {
		_ = h.Downgrade(ctx)
	}
	time.Sleep(time.Duration(r.Int64N(int64(timeout / 8))))
	_ = h.Release(ctx)
	all.Wait()
}

// TestStormOfGuards: whatever breaks, what Guard says was done is done, and what
// it says was not is not and never will be.
func TestStormOfGuards(t *testing.T) {
	for seed := range uint64(storms) {
		if testing.Short() && seed > 0 {
			break
		}
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			if _, _, err := srv.Dial(t).Create(t.Context(), "/made", nil, nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
			g := &guards{said: map[string]error{}}
			ctx, cancel := context.WithTimeout(t.Context(), 60*timeout)
			defer cancel()
			var all sync.WaitGroup
			for i := range 2 {
				c := dial(t, srv)
				for j := range 2 {
					all.Go(func() { g.worker(ctx, c, rand.New(rand.NewPCG(seed, uint64(10*i+j))), 10*i+j) })
				}
			}
			all.Go(func() { (&storm{t: t}).trouble(ctx, srv, rand.New(rand.NewPCG(seed, 99))) })
			all.Wait()
			srv.Delay(0)
			time.Sleep(30 * time.Second)
			names, _, err := srv.Dial(t).Children(t.Context(), "/made")
			if err != nil {
				t.Fatal(err)
			}
			made := map[string]bool{}
			for _, name := range names {
				made["/made/"+name] = true
			}
			count := map[string]int{}
			for node, err := range g.said {
				switch {
				case err == nil:
					count["done"]++
					if !made[node] {
						t.Errorf("%s is said to be done", node)
					}
				case errors.Is(err, zklock.ErrLost), errors.Is(err, zklock.ErrReleased), errors.Is(err, zk.ErrBadVersion):
					count["not done"]++
					if made[node] {
						t.Errorf("%s is done, in spite of: %v", node, err)
					}
				case errors.Is(err, zk.ErrConnectionLost), errors.Is(err, context.DeadlineExceeded):
					count[fmt.Sprint("unknown, made ", made[node])]++
				default:
					t.Errorf("%s: %v", node, err)
				}
			}
			if count["done"] < 50 || count["not done"] < 50 {
				t.Errorf("%v: the storm shows nothing", count)
			}
			t.Logf("seed %d: %v", seed, count)
		})
	}
}
