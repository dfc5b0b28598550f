package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// turnTaken is how often a client held in succession under one token.
type turnTaken struct {
	client int
	token  int64
	holds  int
}

// TestLocalHandoff checks that at most k successive holds share a znode, in order and
// without requests to the servers. Then a waiter of another client is granted.
func TestLocalHandoff(t *testing.T) {
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
					h, err := c.Mutex("local").LocalHandoff(k).Acquire(t.Context())
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

// TestLocalHandoffInMemory checks that a local handoff takes no time, however slow the
// servers are.
func TestLocalHandoffInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.Mutex("local").LocalHandoff(100)
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

// TestLocalHandoffCancelled checks that a cancelled acquire leaves the client's queue,
// even if its znode is in the lock's queue, that a try does not wait, and that a lost
// hold is not handed off.
func TestLocalHandoffCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		l := c.Mutex("local").LocalHandoff(5)
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
			t.Errorf("a try while others wait: %v", err)
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

// TestLocalHandoffClosed checks that no waiter is left when the client is closed.
func TestLocalHandoffClosed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := zklock.New(srv.Dial(t), nil)
		l := c.Mutex("local").LocalHandoff(5)
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

// TestLocalHandoffRefused checks that a lock that cannot be handed off returns an
// error.
func TestLocalHandoffRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		for name, l := range map[string]*zklock.Lock{
			"none in a row":     c.Mutex("a").LocalHandoff(0),
			"a reader":          c.RWMutex("a").Reader().LocalHandoff(2),
			"a semaphore":       c.Semaphore("a", 2).LocalHandoff(2),
			"a node lock":       c.NodeLock("/a").LocalHandoff(2),
			"an All":            zklock.All(c.Mutex("a"), c.Mutex("b")).LocalHandoff(2),
			"a member":          zklock.All(c.Mutex("a").LocalHandoff(2), c.Mutex("b")),
			"a Reentrant one":   c.Mutex("a").Reentrant().LocalHandoff(2),
			"Reentrant besides": c.Mutex("a").LocalHandoff(2).Reentrant(),
		} {
			if _, err := l.Acquire(t.Context()); !errors.Is(err, zklock.ErrInvalidLock) {
				t.Errorf("%s: %v", name, err)
			}
		}
		l := c.RWMutex("a").Writer().LocalHandoff(1)
		h := acquire(t, l)
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		if _, err := l.TryAcquire(ctx); !errors.Is(err, zklock.ErrReentry) {
			t.Errorf("under its own hold: %v", err)
		}
		release(t, h)
	})
}

// TestLocalHandoffRevoked checks that a hold receives a release request, also if it was
// made before the holder watched for it, and under a hold that was handed off, and that
// a hold with a release request is not handed off, whether the holder watches or not.
func TestLocalHandoffRevoked(t *testing.T) {
	for _, looks := range []string{"the first", "the second", "neither"} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			c, other := dial(t, srv), dial(t, srv)
			l := c.Mutex("revoked").LocalHandoff(10)
			h := acquire(t, l)
			if looks == "the first" {
				h.Revoked()
			}
			second, third, fourth := waiting(t, t.Context(), l), waiting(t, t.Context(), l), waiting(t, t.Context(), l)
			foreign := waiting(t, t.Context(), other.Mutex("revoked"))
			release(t, h)
			next := got(t, "the next", second)
			if next.Node() != h.Node() {
				t.Fatal("it was not passed on")
			}
			synctest.Wait()
			if asked, err := other.Mutex("revoked").Revoke(t.Context()); err != nil || len(asked) != 1 {
				t.Fatal(asked, err)
			}
			synctest.Wait()
			if looks != "neither" {
				asked := next.Revoked()
				synctest.Wait()
				select {
				case <-asked:
				default:
					t.Errorf("%s watched: the present hold did not receive the request", looks)
				}
			}
			release(t, next)
			pending(t, "asked for", third)
			for _, w := range []<-chan *zklock.Hold{foreign, third, fourth} {
				release(t, got(t, "in turn", w))
			}
		})
	}
}
