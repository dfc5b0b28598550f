package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// turnTaken is the number of successive holds of a client with one token.
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
		// The 101st hold needs its own znode, and both znodes are deleted.
		if took := time.Since(begun); took > 60*time.Millisecond {
			t.Errorf("100 holds took %v", took)
		}
		srv.Delay(0)
	})
}

// TestLocalHandoffCancelled checks that a canceled acquire leaves the queue of the client, even
// if its znode is in the queue of the lock. A try does not wait, and a lost hold is not handed
// off.
func TestLocalHandoffCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		l := c.Mutex("local").LocalHandoff(5)
		h := acquire(t, other.Mutex("local"))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 { // the first one creates the znode
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
		remove(t, srv.Dial(t), mine.Node())
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

// TestLocalHandoffRefused checks that a lock that cannot be handed off returns an
// error.
func TestLocalHandoffRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		for name, l := range map[string]*zklock.Lock{
			"none in a row":   c.Mutex("a").LocalHandoff(0),
			"a reader":        c.RWMutex("a").Reader().LocalHandoff(2),
			"a semaphore":     c.Semaphore("a", 2).LocalHandoff(2),
			"a node lock":     c.NodeLock("/a").LocalHandoff(2),
			"an All":          zklock.All(c.Mutex("a"), c.Mutex("b")).LocalHandoff(2),
			"a member":        zklock.All(c.Mutex("a").LocalHandoff(2), c.Mutex("b")),
			"a Reentrant one": c.Mutex("a").Reentrant().LocalHandoff(2),
			"also Reentrant":  c.Mutex("a").LocalHandoff(2).Reentrant(),
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

// TestLocalHandoffRevoked checks that a hold receives a release request from before it watched,
// also under a hold that was handed off. A hold with a release request is not handed off, whether
// the holder watches or not.
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

// TestLocalHandoffDowngraded checks that a hold that was downgraded, and now shares the
// lock, is not handed off.
func TestLocalHandoffDowngraded(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l := dial(t, srv).RWMutex("downgraded").Writer().LocalHandoff(10)
		h := acquire(t, l)
		if err := h.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := waiting(t, t.Context(), l)
		release(t, h)
		next := got(t, "the next", second)
		if next.Node() == h.Node() || next.Token() == h.Token() {
			t.Errorf("it was handed %s with the token %d", next.Node(), next.Token())
		}
		release(t, next)
	})
}

// reenter acquires under the context of a hold.
func reenter(t *testing.T, h *zklock.Hold, l *zklock.Lock) *zklock.Hold {
	t.Helper()
	return acquireIn(t, under(t, h), l)
}

// TestReentry checks that re-entering sends no request and keeps znode and token, and
// that the last release, in any order, releases the lock.
func TestReentry(t *testing.T) {
	for _, first := range []int{0, 1, 2} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			l, other := dial(t, srv).Mutex("re").Reentrant(), dial(t, srv).Mutex("re")
			h := acquire(t, l)
			holds := []*zklock.Hold{h, reenter(t, h, l)}
			holds = append(holds, reenter(t, holds[1], l))
			for _, x := range holds {
				if x.Err() != nil || x.Token() != h.Token() || x.Node() != h.Node() || x.Session() != h.Session() || x.TokenOf("re") != h.Token() {
					t.Errorf("%v, token %d, %s; the first has %d, %s", x.Err(), x.Token(), x.Node(), h.Token(), h.Node())
				}
			}
			if n := entries(t, l); n != 1 {
				t.Errorf("%d entries", n)
			}
			for i := range holds {
				x := holds[(first+i)%3]
				locked(t, other)
				release(t, x)
				release(t, x) // a second release has no effect
				if !errors.Is(x.Err(), zklock.ErrReleased) {
					t.Errorf("after its release: %v", x.Err())
				}
				<-x.Done()
			}
			free(t, other)
		})
	}
}

// TestReentryLost checks that a loss ends all holds of the znode.
func TestReentryLost(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).RWMutex("re").Writer().Reentrant(), srv.Dial(t)
		h := acquire(t, l)
		inner := reenter(t, h, l)
		released := reenter(t, h, l)
		release(t, released)
		remove(t, op, h.Node())
		<-inner.Done()
		<-h.Done()
		for _, x := range []*zklock.Hold{h, inner} {
			wants(t, "after the loss", x.Err(), zklock.ErrLost)
			wants(t, "releasing it", x.Release(t.Context()), zklock.ErrLost)
		}
		if err := released.Release(t.Context()); err != nil {
			t.Errorf("what was released before: %v", err)
		}
		// Under a hold that has ended, in a context that has not, it is an ordinary acquire.
		release(t, acquireIn(t, context.WithoutCancel(under(t, h)), l))
	})
}

// TestReentryModes checks which acquires succeed at once under which holds, with and
// without Reentrant.
func TestReentryModes(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		mutex, reader, writer := c.Mutex("m"), c.RWMutex("m").Reader(), c.RWMutex("m").Writer()
		reenters := errors.New("re-enters")
		ordinary := errors.New("creates its own entry")
		for _, row := range []struct {
			held, asked *zklock.Lock
			plain, re   error
		}{
			{mutex, mutex, zklock.ErrReentry, reenters},
			{mutex, writer, zklock.ErrReentry, reenters},
			{mutex, reader, zklock.ErrReentry, reenters},
			{writer, writer, zklock.ErrReentry, reenters},
			{writer, mutex, zklock.ErrReentry, reenters},
			{writer, reader, zklock.ErrReentry, reenters},
			{reader, reader, ordinary, reenters},
			{reader, writer, zklock.ErrUpgrade, zklock.ErrUpgrade},
			{reader, mutex, zklock.ErrUpgrade, zklock.ErrUpgrade},
		} {
			h := acquire(t, row.held)
			ctx := under(t, h)
			for _, asked := range []struct {
				l    *zklock.Lock
				want error
			}{{row.asked, row.plain}, {row.asked.Reentrant(), row.re}} {
				for _, try := range []bool{false, true} {
					take := asked.l.Acquire
					if try {
						take = asked.l.TryAcquire
					}
					x, err := take(ctx)
					switch asked.want {
					case reenters, ordinary:
						if err != nil || (x.Node() == h.Node()) != (asked.want == reenters) {
							t.Errorf("under %s: %v, %v", h.Node(), err, x)
							continue
						}
						release(t, x)
					default:
						wants(t, "under "+h.Node(), err, asked.want)
						if try && asked.want == zklock.ErrReentry {
							wants(t, "trying", err, zklock.ErrLocked)
						}
					}
				}
			}
			release(t, h)
		}
	})
}

// TestReaderUnderWriterKeepsLockExclusive checks that the lock stays exclusive until both holds
// are released.
func TestReaderUnderWriterKeepsLockExclusive(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).RWMutex("rw"), dial(t, srv).RWMutex("rw")
		w := acquire(t, a.Writer())
		r := reenter(t, w, a.Reader().Reentrant())
		w2 := reenter(t, r, a.Writer().Reentrant()) // the lock is still exclusive
		release(t, w)
		release(t, w2)
		locked(t, b.Reader())
		release(t, r)
		free(t, b.Reader())
	})
}

// TestReentryNeedsHoldOfSameClientAndPath checks that other holds in the context do not count.
func TestReentryNeedsHoldOfSameClientAndPath(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv), dial(t, srv)
		outer := acquire(t, a.Mutex("x"))
		ctx := under(t, outer)
		if _, err := b.Mutex("x").Reentrant().TryAcquire(ctx); !errors.Is(err, zklock.ErrLocked) || errors.Is(err, zklock.ErrReentry) {
			t.Errorf("another client's: %v", err)
		}
		y, err := a.Mutex("y").Reentrant().Acquire(ctx)
		if err != nil || y.Node() == outer.Node() {
			t.Fatalf("another path's: %v", err)
		}
		// Both are in the inner context.
		both, cancel := y.Context(ctx)
		defer cancel()
		for _, l := range []*zklock.Lock{a.Mutex("x").Reentrant(), a.Mutex("y").Reentrant()} {
			h, err := l.Acquire(both)
			if err != nil {
				t.Fatal(err)
			}
			release(t, h)
		}
		release(t, y)
		release(t, outer)
	})
}

// TestReentryOfMembers checks that the context of an All carries each of its locks, and also the
// hold of a node lock and the permits of a semaphore.
func TestReentryOfMembers(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		a, b, s := c.Mutex("a"), c.RWMutex("b"), c.Semaphore("s", 3)
		all := acquire(t, zklock.All(a, b.Reader(), s.Permits(2)))
		ctx := under(t, all)
		for what, row := range map[string]struct {
			l    *zklock.Lock
			want error
		}{
			"its mutex":             {a, zklock.ErrReentry},
			"a writer of its":       {b.Writer(), zklock.ErrUpgrade},
			"an All with its mutex": {zklock.All(c.Mutex("z"), a), zklock.ErrReentry},
			"too many permits":      {s.Permits(2), zklock.ErrReentry},
		} {
			_, err := row.l.Acquire(ctx)
			wants(t, what, err, row.want)
			// The error names a lock once, and says which of the locks of an All it is.
			if text := fmt.Sprint(err); strings.HasSuffix(text, " (/zklock/a)") != (what == "an All with its mutex") || what != "an All with its mutex" && strings.Count(text, row.l.Path()) != 1 {
				t.Errorf("%s: %s", what, text)
			}
		}
		twice, cancel := all.Context(ctx) // counts once
		defer cancel()
		one, err := s.Acquire(twice)
		if err != nil {
			t.Errorf("a permit that is left: %v", err)
		} else {
			release(t, one)
		}
		in, err := a.Reentrant().Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if in.Token() != all.Token() || in.Node() != all.Nodes()[0] || len(in.Nodes()) != 1 || in.TokenOf("b") != 0 {
			t.Errorf("a hold of the All's mutex: token %d, %v", in.Token(), in.Nodes())
		}
		release(t, all)
		locked(t, s.Permits(2)) // the All keeps all its znodes
		release(t, in)
		node := acquire(t, c.NodeLock("n"))
		_, err = c.NodeLock("n").Acquire(under(t, node))
		wants(t, "a node lock", err, zklock.ErrReentry)
		release(t, reenter(t, node, c.NodeLock("n").Reentrant()))
		release(t, node)
		if err := c.Resize(t.Context(), "r", 1); err != nil {
			t.Fatal(err)
		}
		resizable := acquire(t, c.ResizableSemaphore("r"))
		short, stop := context.WithTimeout(under(t, resizable), time.Minute)
		defer stop()
		_, err = c.ResizableSemaphore("r").Acquire(short) // its size could increase
		wants(t, "a resizable semaphore", err, context.DeadlineExceeded)
		release(t, resizable)
		remove(t, srv.Dial(t), "/zklock/r/size")
	})
}

// TestDoReenters checks Do within Do, as when a function that locks is called by a function that
// holds the lock.
func TestDoReenters(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, other := dial(t, srv).Mutex("do").Reentrant(), dial(t, srv).Mutex("do")
		depth := 0
		var down func(ctx context.Context, h *zklock.Hold) error
		down = func(ctx context.Context, h *zklock.Hold) error {
			locked(t, other)
			if depth++; depth == 5 {
				return nil
			}
			return zklock.Do(ctx, l, down)
		}
		if err := zklock.Do(t.Context(), l, down); err != nil || depth != 5 {
			t.Errorf("%v at depth %d", err, depth)
		}
		free(t, other)
	})
}

// TestDoReportsLossOnce checks the error of Do if the function returns the cause of its context.
func TestDoReportsLossOnce(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		err := zklock.Do(t.Context(), dial(t, srv).Mutex("lost"), func(ctx context.Context, h *zklock.Hold) error {
			remove(t, srv.Dial(t), h.Node())
			<-ctx.Done()
			return context.Cause(ctx)
		})
		wants(t, "Do", err, zklock.ErrDeleted)
		if n := strings.Count(err.Error(), "the hold is lost"); n != 1 {
			t.Errorf("the loss is reported %d times: %v", n, err)
		}
	})
}

// callingContext is a context whose Value calls a function.
type callingContext struct {
	context.Context
	call func()
}

func (c callingContext) Value(key any) any {
	c.call()
	return c.Context.Value(key)
}

// TestContextMayCallHold checks that the methods of a caller's context may call the client.
func TestContextMayCallHold(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		h := acquire(t, c.Mutex("outer"))
		ctx := callingContext{under(t, h), func() {
			if err := h.Err(); err != nil {
				t.Error(err)
			}
		}}
		for _, l := range []*zklock.Lock{c.Mutex("inner"), c.Mutex("outer").Reentrant(), zklock.All(c.Mutex("a"), c.Mutex("b"))} {
			release(t, acquireIn(t, ctx, l))
		}
		release(t, h)
	})
}

// TestReentryCallsHooksOnce checks that hooks are called once for all holds of one
// znode.
func TestReentryCallsHooksOnce(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		told := make(chan string, 10)
		c := dialWith(t, srv, zklock.Options{
			OnAcquire: func(zklock.Event) { told <- "acquire" },
			OnRelease: func(zklock.Event) { told <- "release" },
		})
		l := c.Mutex("hooks").Reentrant()
		h := acquire(t, l)
		release(t, reenter(t, h, l))
		release(t, h)
		time.Sleep(time.Second)
		if n := len(told); n != 2 {
			t.Errorf("hooks were told %d times", n)
		}
	})
}
