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

// permitsThere is how many permits the storm's semaphore has.
const permitsThere = 3

// A share is what one hold has of one thing.
type share struct {
	thing string
	mode  zklock.Mode
	n     int // permits
}

// kindsStorm is many goroutines that take locks of every kind on a few paths.
type kindsStorm struct {
	t      *testing.T
	mu     sync.Mutex // guards what follows
	held   map[*zklock.Hold][]share
	tokens map[string]int64 // of the last exclusive grant of each queue
	grants map[string]int
}

// took notes a grant: whatever conflicts with it must not be held any more, by
// its own word, at this very moment; and exclusive tokens grow.
func (s *kindsStorm) took(kind string, h *zklock.Hold, shares []share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Err() != nil { // lost in the meantime, so it says nothing about others
		return
	}
	s.grants[kind]++
	for _, mine := range shares {
		taken := mine.n
		for other, has := range s.held {
			for _, theirs := range has {
				if theirs.thing != mine.thing || other.Err() != nil {
					continue
				}
				taken += theirs.n
				if mine.mode == zklock.Exclusive || theirs.mode == zklock.Exclusive {
					s.t.Errorf("%s: %s is granted %s while %s", kind, mine.thing, mine.mode, theirs.mode)
				}
			}
		}
		if mine.mode == zklock.Permit && taken > permitsThere {
			s.t.Errorf("%s: %d permits of %s are held", kind, taken, mine.thing)
		}
		if token := h.TokenOf(mine.thing); mine.mode == zklock.Exclusive {
			if token <= s.tokens[mine.thing] {
				s.t.Errorf("%s: token %d of %s after %d", kind, token, mine.thing, s.tokens[mine.thing])
			}
			s.tokens[mine.thing] = token
		}
	}
	s.held[h] = shares
}

// verifies asks a quorum whether the hold is held. It is not, once a conflicting
// one was granted before the question.
func (s *kindsStorm) verifies(ctx context.Context, kind string, h *zklock.Hold, thing string) {
	s.mu.Lock()
	over := s.tokens[thing] > h.TokenOf(thing)
	s.mu.Unlock()
	err := h.Verify(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.grants["verified"]++
		if over {
			s.t.Errorf("%s: token %d of %s is verified after a later grant", kind, h.TokenOf(thing), thing)
		}
	}
}

// revokes has a hold asked for, by its own words of who holds it, and waits a
// while for the news.
func (s *kindsStorm) revokes(ctx context.Context, l *zklock.Lock, h *zklock.Hold) {
	asked := h.Revoked()
	if _, err := l.Revoke(ctx); err != nil {
		return // cut off, or it is held no more
	}
	select {
	case <-asked:
		s.mu.Lock()
		s.grants["revoked"]++
		s.mu.Unlock()
	case <-h.Done():
	case <-ctx.Done():
	}
}

// leaves notes that a hold is about to be released.
func (s *kindsStorm) leaves(h *zklock.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, h)
}

// downgraded notes that a writer is about to be a reader.
func (s *kindsStorm) downgraded(h *zklock.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has := s.held[h]; len(has) == 1 {
		s.held[h] = []share{{has[0].thing, zklock.Shared, 0}}
	}
}

// pick chooses a lock.
func pick(c *zklock.Client, r *rand.Rand) (kind string, l *zklock.Lock, shares []share) {
	thing := fmt.Sprint("thing", r.IntN(2))
	k := 1 + r.IntN(permitsThere)
	switch r.IntN(8) {
	case 0:
		return "mutex", c.Mutex(thing), []share{{thing, zklock.Exclusive, 0}}
	case 1:
		return "writer", c.RWMutex(thing).Writer(), []share{{thing, zklock.Exclusive, 0}}
	case 2, 3:
		return "reader", c.RWMutex(thing).Reader(), []share{{thing, zklock.Shared, 0}}
	case 4, 5:
		return "semaphore", c.Semaphore("permits", permitsThere).Permits(k), []share{{"permits", zklock.Permit, k}}
	case 6:
		return "node", c.NodeLock("node"), []share{{"node", zklock.Exclusive, 0}}
	}
	all := zklock.All(c.Mutex("thing0"), c.RWMutex("thing1").Reader(), c.Semaphore("permits", permitsThere))
	if r.IntN(2) == 0 {
		all = all.InOrder()
	}
	return "all", all, []share{{"thing0", zklock.Exclusive, 0}, {"thing1", zklock.Shared, 0}, {"permits", zklock.Permit, 1}}
}

// worker acquires, tries, gives up, verifies, asks for it, downgrades and releases until
// ctx ends.
func (s *kindsStorm) worker(ctx context.Context, c *zklock.Client, r *rand.Rand) {
	for ctx.Err() == nil {
		kind, l, shares := pick(c, r)
		wait, cancel := context.WithTimeout(ctx, time.Duration(r.Int64N(int64(4*timeout))))
		take := l.Acquire
		if r.IntN(3) == 0 {
			take = l.TryAcquire
		}
		h, err := take(wait)
		if err == nil {
			s.took(kind, h, shares)
			time.Sleep(time.Duration(r.Int64N(int64(timeout / 8))))
			switch {
			case r.IntN(3) == 0 && shares[0].mode == zklock.Exclusive && kind != "node":
				s.verifies(wait, kind, h, shares[0].thing)
			case r.IntN(8) == 0:
				s.revokes(wait, l, h)
			}
			if kind == "writer" && r.IntN(2) == 0 {
				s.downgraded(h) // from now on readers may come in
				_ = h.Downgrade(wait)
				time.Sleep(time.Duration(r.Int64N(int64(timeout / 8))))
			}
			s.leaves(h)
			_ = h.Release(wait) // lost, unconfirmed or done: all happen here
		} else if !errors.Is(err, zklock.ErrLocked) && !errors.Is(err, wait.Err()) && !errors.Is(err, zklock.ErrClosed) {
			s.t.Errorf("%s: acquire: %v", kind, err)
		}
		cancel()
		time.Sleep(time.Duration(r.Int64N(int64(timeout / 20))))
	}
}

// TestStormOfKinds: whatever breaks, in whatever layout, no two holds conflict by their own word,
// exclusive tokens grow, and nothing is left.
func TestStormOfKinds(t *testing.T) {
	seeds := uint64(storms)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { stormOfKinds(t, seed) })
	}
}

func stormOfKinds(t *testing.T, seed uint64) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s := &kindsStorm{t: t, held: map[*zklock.Hold][]share{}, tokens: map[string]int64{}, grants: map[string]int{}}
		r := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1000+n)) }
		o := []zklock.Options{
			{},
			{Layout: zklock.MixedLayout(), LockDelay: time.Second},
			{Layout: zklock.Layout{Prefix: "same", Exclusive: "-W-", Shared: "-R-"}},
			{Layout: zklock.Layout{Exclusive: "_lock_", Shared: "_read_", InParent: true}},
			{SyncHeartbeat: true, ServerTick: timeout / 8, PersistentParents: true},
		}[seed%5]
		shared := srv.Dial(t, func(o *zk.Options) { o.SessionTimeout = timeout })
		clients := []*zklock.Client{dialWith(t, srv, o), dialWith(t, srv, o), zklock.New(shared, &o)}
		ctx, cancel := context.WithTimeout(t.Context(), 60*timeout)
		defer cancel()
		var all sync.WaitGroup
		for i, c := range clients {
			for j := range 4 {
				all.Go(func() { s.worker(ctx, c, r(uint64(10*i+j))) })
			}
		}
		breaker := &storm{t: t}
		all.Go(func() { breaker.trouble(ctx, srv, r(99)) })
		all.Wait()
		srv.Delay(0)
		time.Sleep(30 * time.Second)
		if !t.Failed() {
			onlyParents(t, srv)
		}
		kinds := []string{"mutex", "writer", "reader", "semaphore", "node", "all", "revoked"}
		if o.Layout.Exclusive == "" { // else names are not unique, and nothing verifies
			kinds = append(kinds, "verified")
		}
		for _, kind := range kinds {
			if s.grants[kind] < 3 {
				t.Errorf("%d grants of %s only: the storm shows nothing", s.grants[kind], kind)
			}
		}
		t.Logf("%v", s.grants)
	})
}
