package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestReleaseAsync: a release that does not wait ends the hold at once, is carried
// out, and can be waited for afterwards.
func TestReleaseAsync(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.Mutex("async")
		h := acquire(t, l)
		srv.Delay(10 * time.Millisecond)
		begun := time.Now()
		if err := h.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
		if err := h.Err(); !errors.Is(err, zklock.ErrReleased) {
			t.Errorf("the hold says %v", err)
		}
		if err := h.ReleaseAsync(); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := h.Release(t.Context()); err != nil || time.Since(begun) < 10*time.Millisecond {
			t.Errorf("waited for after %v: %v", time.Since(begun), err)
		}
		srv.Delay(0)
		if _, _, err := srv.Dial(t).Get(t.Context(), h.Node()); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("its znode: %v", err)
		}
	})
}

// TestReleaseAsyncLost: of a hold that was lost it says so, and of one whose answer
// is lost it is carried out all the same.
func TestReleaseAsyncLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		h := acquire(t, c.Mutex("async"))
		srv.DropReply(zktest.Match{})
		_ = h.ReleaseAsync()
		if err := h.Release(t.Context()); err != nil {
			t.Errorf("with a lost answer: %v", err)
		}
		h = acquire(t, c.Mutex("async"))
		if err := srv.Dial(t).Delete(t.Context(), h.Node(), -1); err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		if err := h.ReleaseAsync(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("of a lost hold: %v", err)
		}
	})
}

// TestReleaseAndAcquire: a release that does not wait and the next acquire take one
// round trip together, of the same lock and of another, with tokens that grow.
func TestReleaseAndAcquire(t *testing.T) {
	const way = 10 * time.Millisecond // there or back
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		acquire(t, c.Mutex("other")).Release(t.Context()) // its parent is made
		h := acquire(t, c.Mutex("async"))
		srv.Delay(way)
		for i := range 20 {
			name := "async"
			if i%4 == 3 {
				name = "other"
			}
			begun, token := time.Now(), h.Token()
			if err := h.ReleaseAsync(); err != nil {
				t.Fatal(err)
			}
			h = acquire(t, c.Mutex(name))
			if took := time.Since(begun); took > 2*way {
				t.Errorf("round %d took %v", i, took)
			}
			if h.Token() <= token {
				t.Errorf("round %d: token %d after %d", i, h.Token(), token)
			}
		}
		srv.Delay(0)
		release(t, h)
	})
}

// TestHandOverInMemory: a release gives the lock to whoever of the same client waits
// next, before a server knows, in turn and with its own token; who waits in another
// client has its turn in between.
func TestHandOverInMemory(t *testing.T) {
	const way = 10 * time.Millisecond
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		h := acquire(t, c.Mutex("memory"))
		var mu sync.Mutex
		var order []string
		var tokens []int64
		var all sync.WaitGroup
		wait := func(name string, c *zklock.Client) {
			all.Go(func() {
				h, err := c.Mutex("memory").Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order, tokens = append(order, name), append(tokens, h.Token())
				mu.Unlock()
				_ = h.ReleaseAsync()
			})
			time.Sleep(time.Second) // it stands in the queue
		}
		for i := range 3 {
			wait(fmt.Sprint("mine", i), c)
		}
		wait("other", other)
		wait("mine3", c)
		srv.Delay(way)
		begun := time.Now()
		if err := h.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond) // the goroutines have run
		mu.Lock()
		if len(order) != 3 {
			t.Errorf("%v after %v", order, time.Since(begun))
		}
		mu.Unlock()
		all.Wait()
		if got := fmt.Sprint(order); got != "[mine0 mine1 mine2 other mine3]" {
			t.Errorf("granted in the order %s", got)
		}
		for i := range tokens {
			if last := append([]int64{h.Token()}, tokens...)[i]; tokens[i] <= last {
				t.Errorf("token %d after %d", tokens[i], last)
			}
		}
		srv.Delay(0)
	})
}

// TestHandOverCancelled: a waiter that gives up is passed over.
func TestHandOverCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.Mutex("cancelled")
		h := acquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := l.Acquire(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
		})
		time.Sleep(time.Second)
		next := make(chan *zklock.Hold, 1)
		all.Go(func() {
			h, err := l.Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- h
		})
		time.Sleep(time.Second)
		cancel()
		time.Sleep(time.Second)
		select {
		case <-next:
			t.Error("granted by the end of a waiter")
		default:
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, <-next)
		all.Wait()
	})
}

// TestHandOverGuard: while a guarded write is not answered the lock is not handed
// over in memory: the write is done as long as the znode is there, and so might be
// after the next owner has begun.
func TestHandOverGuard(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.Mutex("guarded")
		op := srv.Dial(t)
		if _, _, err := op.Create(t.Context(), "/written", []byte("first"), nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		h := acquire(t, l)
		next := make(chan *zklock.Hold, 1)
		var all sync.WaitGroup
		all.Go(func() {
			h, err := l.Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- h
		})
		time.Sleep(time.Second)
		srv.Delay(10 * time.Millisecond)
		all.Go(func() {
			if err := h.Guard(t.Context(), zk.SetOp("/written", []byte("second"), -1)); err != nil {
				t.Errorf("guard: %v", err)
			}
		})
		time.Sleep(time.Nanosecond) // it is under way
		begun := time.Now()
		if err := h.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		mine := <-next
		if took := time.Since(begun); took < 10*time.Millisecond {
			t.Errorf("granted %v after the release", took)
		}
		if data, _, err := op.Get(t.Context(), "/written"); err != nil || string(data) != "second" {
			t.Errorf("the next owner finds %q, %v", data, err)
		}
		all.Wait()
		srv.Delay(0)
		release(t, mine)
	})
}

// TestHandOverBesideReader: a writer behind its own client's reader is not granted by
// that one's release while the hold that was a writer's before is there: it may be
// this client's or another's, and the reader need not know of it.
func TestHandOverBesideReader(t *testing.T) {
	for _, other := range []bool{false, true} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			c := dial(t, srv)
			l, first := c.RWMutex("beside"), c.RWMutex("beside")
			if other {
				first = dial(t, srv).RWMutex("beside")
			}
			h := acquire(t, first.Writer())
			reader := waiting(t, t.Context(), l.Reader())
			pending(t, "behind a writer", reader)
			if err := h.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := got(t, "the reader", reader)
			writer := waiting(t, t.Context(), l.Writer())
			pending(t, "the writer behind two readers", writer)
			release(t, r)
			pending(t, "the writer behind the downgraded hold", writer)
			release(t, h)
			release(t, got(t, "the writer", writer))
		})
	}
}
