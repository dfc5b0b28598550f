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

// ends counts for each possession how often hooks told of its begin and its end.
type ends struct {
	mu    sync.Mutex // guards what follows
	begun map[string]int
	ended map[string]int
}

func (e *ends) note(of map[string]int, client int) func(zklock.Event) {
	return func(v zklock.Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		of[fmt.Sprint("client ", client, " ", v.Path, " ", v.Token)]++
	}
}

func (e *ends) options(client int) zklock.Options {
	return zklock.Options{
		OnAcquire: e.note(e.begun, client),
		OnRelease: e.note(e.ended, client),
		OnLost:    e.note(e.ended, client),
	}
}

// reentries is callers who lock below callers who have locked.
type reentries struct {
	t    *testing.T
	c    *zklock.Client
	mu   sync.Mutex // guards what follows
	seen map[string]int
	r    *rand.Rand
}

// dice returns a number below n.
func (s *reentries) dice(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

func (s *reentries) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[what]++
}

func (s *reentries) pause() { time.Sleep(time.Duration(s.dice(int(timeout / 8)))) }

// lock is any lock on one of two paths.
func (s *reentries) lock() *zklock.Lock {
	name := fmt.Sprint("thing", s.dice(2))
	switch s.dice(6) {
	case 0:
		return s.c.Mutex(name).Reentrant()
	case 1, 2:
		return s.c.RWMutex(name).Reader().Reentrant()
	case 3:
		return zklock.All(s.c.RWMutex("thing0").Writer(), s.c.RWMutex("thing1").Reader())
	}
	return s.c.RWMutex(name).Writer().Reentrant()
}

// call locks, perhaps below who has locked, and calls others who do.
func (s *reentries) call(ctx context.Context, above []*zklock.Hold, depth int) {
	var cancel context.CancelFunc
	if s.dice(3) == 0 {
		ctx = context.WithoutCancel(ctx) // what the caller holds may have ended
	}
	ctx, cancel = context.WithTimeout(ctx, time.Duration(s.dice(int(2*timeout))))
	defer cancel()
	l := s.lock()
	h, err := l.Acquire(ctx)
	switch {
	case errors.Is(err, zklock.ErrUpgrade):
		s.count("upgrade")
	case errors.Is(err, zklock.ErrReentry):
		s.count("reentry")
	case err != nil && ctx.Err() == nil:
		s.t.Errorf("%s: %v", l, err)
	}
	if err != nil {
		return
	}
	s.count("held")
	for _, a := range above {
		if h.Node() != "" && a.TokenOf(l.Path()) == h.Token() {
			s.count("re-entered")
			break
		}
	}
	s.use(ctx, h, append(above[:len(above):len(above)], h), depth)
}

// use does everything that can be done with a hold, and releases it before, while
// or after those below do.
func (s *reentries) use(ctx context.Context, h *zklock.Hold, stack []*zklock.Hold, depth int) {
	var below sync.WaitGroup
	defer below.Wait()
	inner, cancel := h.Context(ctx)
	defer cancel()
	token := h.Token()
	for range s.dice(3) {
		if depth < 4 {
			below.Go(func() { s.call(inner, stack, depth+1) })
		}
	}
	s.pause()
	switch s.dice(6) {
	case 0:
		if err := h.Downgrade(ctx); err == nil {
			s.count("downgraded")
		}
	case 1:
		if err := h.Guard(inner, zk.SetOp("/data", nil, -1)); err == nil {
			s.count("guarded")
		}
	case 2:
		h.Revoked()
	case 3:
		below.Go(func() { _ = h.Release(ctx) })
	case 4:
		below.Wait()
	}
	s.pause()
	if h.Token() != token {
		s.t.Errorf("%d has become %d", token, h.Token())
	}
	if err := h.Release(ctx); errors.Is(err, zklock.ErrLost) {
		s.count("lost")
	}
	if h.Err() == nil || h.Remaining() != 0 {
		s.t.Errorf("held after its release, for %v", h.Remaining())
	}
	<-h.Done()
	if inner.Err() == nil {
		<-inner.Done()
	}
}

// TestStormOfReentries: whoever locks below whom, whatever breaks and in whatever
// order they release, each possession begins once and ends once, and nothing is
// left.
func TestStormOfReentries(t *testing.T) {
	seeds := uint64(storms)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			tidy(t, func(t *testing.T, srv *zktest.Server) { stormOfReentries(t, srv, seed) })
		})
	}
}

func stormOfReentries(t *testing.T, srv *zktest.Server, seed uint64) {
	op := srv.Dial(t)
	if _, _, err := op.Create(t.Context(), "/data", nil, nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	told := &ends{begun: map[string]int{}, ended: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), 60*timeout)
	defer cancel()
	seen := map[string]int{}
	var all sync.WaitGroup
	for i := range 2 {
		s := &reentries{t: t, c: dialWith(t, srv, told.options(i)), seen: map[string]int{}, r: rand.New(rand.NewPCG(seed, uint64(i)))}
		defer func() {
			for what, n := range s.seen {
				seen[what] += n
			}
			if i == 0 { // the last one, with all of them
				t.Log(seen)
			}
		}()
		for range 3 {
			all.Go(func() {
				for ctx.Err() == nil {
					s.call(ctx, nil, 0)
					s.pause()
				}
			})
		}
	}
	all.Go(func() { (&storm{t: t}).trouble(ctx, srv, rand.New(rand.NewPCG(seed, 99))) })
	all.Wait()
	srv.Delay(0)
	time.Sleep(30 * time.Second)
	told.mu.Lock()
	defer told.mu.Unlock()
	for what, n := range told.begun {
		if n != 1 || told.ended[what] != 1 {
			t.Errorf("%s began %d times and ended %d times", what, n, told.ended[what])
		}
	}
	for what := range told.ended {
		if told.begun[what] == 0 {
			t.Errorf("%s ended and did not begin", what)
		}
	}
}
