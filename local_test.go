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

// turnTaken is how often a client held in a row on one token.
type turnTaken struct {
	client int
	token  int64
	holds  int
}

// TestLocal: at most k holds in a row share a znode, passed on in order without the
// servers; then whoever waits in another client has its turn.
func TestLocal(t *testing.T) {
	const k = 3
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		clients := []*zklock.Client{dial(t, srv), dial(t, srv)}
		first := acquire(t, clients[0].Mutex("local"))
		var mu sync.Mutex
		var order []string
		var turns []turnTaken
		var all sync.WaitGroup
		holding := false
		for i := range 7 {
			for n, c := range clients {
				all.Go(func() {
					h, err := c.Mutex("local").Local(k).Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if holding {
						t.Error("two hold")
					}
					holding = true
					order = append(order, fmt.Sprintf("%d%d", n, i))
					if l := len(turns); l == 0 || turns[l-1].token != h.Token() {
						turns = append(turns, turnTaken{n, h.Token(), 0})
					}
					turns[len(turns)-1].holds++
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					holding = false
					mu.Unlock()
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
					if err := h.Err(); !errors.Is(err, zklock.ErrReleased) {
						t.Errorf("after its release: %v", err)
					}
				})
				time.Sleep(time.Second)
			}
		}
		release(t, first)
		all.Wait()
		for i, turn := range turns {
			if turn.holds > k || i > 0 && turn.token <= turns[i-1].token {
				t.Errorf("turns %v", turns)
			}
			if want := i % 2; turn.client != want && i < 5 {
				t.Errorf("turn %d is client %d's: %v", i, turn.client, turns)
			}
		}
		if got := fmt.Sprint(order[:6]); got != "[00 01 02 10 11 12]" {
			t.Errorf("held in the order %v", order)
		}
		if len(order) != 14 || len(turns) != 6 {
			t.Errorf("%d holds in %d turns", len(order), len(turns))
		}
	})
}

// TestLocalInMemory: passing a hold on takes no time, whatever the servers take.
func TestLocalInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.Mutex("local").Local(100)
		h := acquire(t, l)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 2 {
					h, err := l.Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					_ = h.Release(t.Context())
				}
			})
		}
		time.Sleep(time.Second)
		srv.Delay(10 * time.Millisecond)
		begun := time.Now()
		release(t, h)
		all.Wait()
		// The 101st hold needs a znode of its own, and to give both back.
		if took := time.Since(begun); took > 60*time.Millisecond {
			t.Errorf("100 holds took %v", took)
		}
		srv.Delay(0)
	})
}

// TestLocalGivenUp: who gives up leaves the line, also as the one whose znode stands
// in the queue; a try does not wait; and what was lost is not passed on.
func TestLocalGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		l := c.Mutex("local").Local(5)
		h := acquire(t, other.Mutex("local"))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 { // the first has the znode
			all.Go(func() {
				if _, err := l.Acquire(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("given up: %v", err)
				}
			})
			time.Sleep(time.Second)
		}
		next := make(chan *zklock.Hold, 2)
		for range 2 {
			all.Go(func() {
				h, err := l.Acquire(t.Context())
				if err != nil {
					t.Error(err)
				}
				next <- h
			})
			time.Sleep(time.Second)
		}
		if _, err := l.TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Errorf("a try beside those that wait: %v", err)
		}
		cancel()
		time.Sleep(time.Second)
		release(t, h)
		mine := <-next
		if entries := inspect(t, l); len(entries) != 1 || entries[0].Node != mine.Node() {
			t.Errorf("in the queue: %v", entries)
		}
		if err := srv.Dial(t).Delete(t.Context(), mine.Node(), -1); err != nil {
			t.Fatal(err)
		}
		<-mine.Done()
		if err := mine.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("of the lost one: %v", err)
		}
		again := <-next
		if again.Token() <= mine.Token() || again.Node() == mine.Node() {
			t.Errorf("after a loss: %s with %d, after %s with %d", again.Node(), again.Token(), mine.Node(), mine.Token())
		}
		release(t, again)
		all.Wait()
	})
}

// TestLocalClosed: a client that is closed leaves nobody waiting.
func TestLocalClosed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := zklock.New(srv.Dial(t), nil)
		l := c.Mutex("local").Local(5)
		h := acquire(t, l)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := l.Acquire(t.Context()); !errors.Is(err, zklock.ErrClosed) {
					t.Errorf("of a closed client: %v", err)
				}
			})
		}
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		if err := h.Err(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("the hold: %v", err)
		}
	})
}

// TestLocalRefused: what can't be Local says so.
func TestLocalRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		for name, l := range map[string]*zklock.Lock{
			"none in a row":     c.Mutex("a").Local(0),
			"a reader":          c.RWMutex("a").Reader().Local(2),
			"a semaphore":       c.Semaphore("a", 2).Local(2),
			"a node lock":       c.NodeLock("/a").Local(2),
			"an All":            zklock.All(c.Mutex("a"), c.Mutex("b")).Local(2),
			"a member":          zklock.All(c.Mutex("a").Local(2), c.Mutex("b")),
			"a Reentrant one":   c.Mutex("a").Reentrant().Local(2),
			"Reentrant besides": c.Mutex("a").Local(2).Reentrant(),
		} {
			if _, err := l.Acquire(t.Context()); !errors.Is(err, zklock.ErrInvalidLock) {
				t.Errorf("%s: %v", name, err)
			}
		}
		l := c.RWMutex("a").Writer().Local(1)
		h := acquire(t, l)
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		if _, err := l.TryAcquire(ctx); !errors.Is(err, zklock.ErrReentry) {
			t.Errorf("under its own hold: %v", err)
		}
		release(t, h)
	})
}

// TestStormOfLocals: whatever breaks, one holds at a time, and tokens never go back.
func TestStormOfLocals(t *testing.T) {
	seeds := uint64(storms)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			s := &localStorm{t: t}
			r := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 5000+n)) }
			clients := []*zklock.Client{dial(t, srv), dial(t, srv), dial(t, srv)}
			ctx, cancel := context.WithTimeout(t.Context(), 60*timeout)
			defer cancel()
			var all sync.WaitGroup
			for i, c := range clients {
				for j := range 5 {
					l := c.Mutex("storm").Local(2 + i)
					all.Go(func() { s.worker(ctx, l, r(uint64(10*i+j))) })
				}
			}
			breaker := &storm{t: t}
			all.Go(func() { breaker.trouble(ctx, srv, r(99)) })
			all.Wait()
			srv.Delay(0)
			time.Sleep(30 * time.Second)
			names, _, err := srv.Dial(t).Children(t.Context(), "/zklock/storm")
			if err != nil && !errors.Is(err, zk.ErrNoNode) || len(names) != 0 {
				t.Errorf("seed %d: %v are left, %v", seed, names, err)
			}
			if s.grants < 100 || s.passed < 50 {
				t.Errorf("seed %d: %d grants, %d passed on: the storm shows nothing", seed, s.grants, s.passed)
			}
			t.Logf("seed %d: %d grants, %d passed on", seed, s.grants, s.passed)
		})
	}
}

// localStorm is many goroutines that take one Local lock.
type localStorm struct {
	t              *testing.T
	mu             sync.Mutex // guards what follows
	holder         *zklock.Hold
	last           int64
	grants, passed int
}

func (s *localStorm) took(h *zklock.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Err() != nil {
		return
	}
	if s.holder != nil && s.holder.Err() == nil {
		s.t.Errorf("token %d is granted while %d is held", h.Token(), s.holder.Token())
	}
	switch {
	case h.Token() < s.last:
		s.t.Errorf("token %d after %d", h.Token(), s.last)
	case h.Token() == s.last:
		s.passed++
	}
	s.holder, s.last = h, h.Token()
	s.grants++
}

// worker acquires, tries, gives up, verifies and releases until ctx ends.
func (s *localStorm) worker(ctx context.Context, l *zklock.Lock, r *rand.Rand) {
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, time.Duration(r.Int64N(int64(4*timeout))))
		take := l.Acquire
		if r.IntN(4) == 0 {
			take = l.TryAcquire
		}
		h, err := take(wait)
		if err == nil {
			s.took(h)
			time.Sleep(time.Duration(r.Int64N(int64(timeout / 16))))
			if r.IntN(4) == 0 {
				_ = h.Verify(wait)
			}
			if r.IntN(2) == 0 {
				_ = h.ReleaseAsync()
			} else {
				_ = h.Release(wait) // lost, unconfirmed or done: all happen here
			}
		} else if !errors.Is(err, zklock.ErrLocked) && !errors.Is(err, wait.Err()) {
			s.t.Errorf("acquire: %v", err)
		}
		cancel()
		time.Sleep(time.Duration(r.Int64N(int64(timeout / 40))))
	}
}
